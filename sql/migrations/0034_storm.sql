-- What storm_fraction is held against: not a page, which has so many rows, but what comes until the worker has caught up.
comment on column tidemark.worker.storm_fraction is 'More than this share of all groups touched before the worker has caught up opens the finding group_invalidation_storm and slows the worker down; not while it is seeding. Null (default): no guard. For tables.';
