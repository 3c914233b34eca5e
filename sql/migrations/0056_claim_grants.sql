-- A fingerprint has no salt: a reader who guesses a payload could prove the guess.
revoke select (fingerprint) on tidemark.command_claim from tidemark_reader;
