package config

import _ "embed"

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema of the file, for editors. It expresses only what a schema can: Load has the last word.
func Schema() []byte { return schema }
