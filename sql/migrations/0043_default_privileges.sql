-- Nobody may call a function unless its file grants that.
alter default privileges revoke execute on functions from public;
comment on table tidemark.code is 'Functions, triggers and views as last re-created from the files of sql/code/.';
comment on column tidemark.code.object is 'Name of the function, trigger or view.';
