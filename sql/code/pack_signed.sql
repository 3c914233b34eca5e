create or replace trigger pack_signed
before insert or update on tidemark.pack
for each row execute function tidemark.signed('installed_by');
comment on trigger pack_signed on tidemark.pack is 'Each row names the role that made it, and no other.';
