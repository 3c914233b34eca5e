select count(*) from tidemark.emit_many(:payloads);
