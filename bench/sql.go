package main

import _ "embed"

var (
	//go:embed sql/schema.sql
	schemaSQL string
	//go:embed sql/writers.sql
	writersSQL string
	//go:embed sql/set_based.sql
	setBasedSQL string
	//go:embed sql/subtransaction.sql
	subtransactionSQL string
	//go:embed sql/pgq.sql
	pgqSQL string
	//go:embed sql/tidemark.sql
	tidemarkSQL string
	//go:embed sql/sweep.sql
	sweepSQL string
)

// payload gives the 200 bytes of JSON of event number n.
const payload = `jsonb_build_object('n', n, 'pad', repeat('x', 183 - length(n::text)))`
