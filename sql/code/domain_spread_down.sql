create or replace trigger domain_spread_down
after update of metadata_only, restricted on tidemark.domain
for each row execute function tidemark.domain_spread();
comment on trigger domain_spread_down on tidemark.domain is 'Types follow their domain.';
