-- tidemark.decide_batch collects the numbers itself.

drop function if exists tidemark.group_numbers;
delete from tidemark.code where object = 'group_numbers';
