package console

import (
	"encoding/json"
	"net/url"
)

// configuring are acts that make and delete things, say who may emit, and erase.
var configuring = map[string]act{
	"route-go-live": {
		title: "Open all that keeps route {route} from delivering", button: "Go live", role: Admin, method: "POST", path: "/routes/{route}/go-live", body: nothing,
		danger: "route", preview: "/routes/{route}/switches", leaves: []string{"sql", "cli"}, shows: "What has to be open", back: "/routes/{route}",
		warn: "The stage, gates and switches below are opened in one step, and what waits is sent. Test its target first.",
	},
	"route-new": {
		title: "Make a route", button: "Make it", role: Admin, method: "PUT", path: "/routes/{route}", body: columns, back: "/routes/{route}",
		fields: made("route", "Code", `{"domain": "shop", "type": "order.paid", "target_kind": "webhook", "target_ref": "https://example.com/hook"}`),
		warn:   "It is off and in dry run, unless you say otherwise. A route with this code is changed.",
	},
	"route-delete": deletion("route {route}", "/routes/{route}", "route", "/routes",
		"It has to be off, and owe nothing. Its evidence stays, and a route that is made again with this code goes on with it."),
	"worker-new": {
		title: "Make a worker", button: "Make it", role: Admin, method: "PUT", path: "/workers/{worker}", body: columns, back: "/workers/{worker}",
		fields: made("worker", "Name", `{"domains": ["shop"]}, or {"source": "table", "handler": "sql", "handler_ref": "public.greet"}`),
		warn:   "A worker of the log begins at its end. Its gate is closed until you open it. A worker of this name is changed.",
	},
	"worker-delete": deletion("worker {worker}", "/workers/{worker}", "worker", "/workers",
		"No route may need it, no source may be read by it, and no daemon may run it. Its evidence stays; the log keeps no events for it any more."),
	"worker-attach": {
		title: "Let worker {worker} read a source", button: "Attach", role: Admin, method: "POST", path: "/workers/{worker}/attach", body: given("source"), back: "/workers/{worker}",
		fields: []field{{Name: "source", Label: "Source", Kind: "text", Required: true}},
		warn:   "It reads the table from its beginning. Its handler gets all rows.",
	},
	"worker-detach": {
		title: "Take source {source} from worker {worker}", button: "Detach", role: Admin, method: "POST", path: "/workers/{worker}/detach", body: given("source"),
		danger: "source", back: "/workers/{worker}", warn: "Its cursors go, and the audit keeps their last state. Attached again, it begins at the beginning.",
	},
	"source-new": {
		title: "Make a table a source", button: "Make it", role: Admin, method: "PATCH", path: "/sources/{source}", body: columns, back: "/sources/{source}",
		fields: made("source", "Name", `{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "safety": "clock"}`),
		warn:   "It is refused where its safety cannot hold; the source's page says what the check finds. A source of this name is changed.",
	},
	"source-delete": deletion("source {source}", "/sources/{source}", "source", "/sources", "No worker may read it. Its table stays as it is."),
	"capture-route-new": {
		title: "Make an inbound route", button: "Make it", role: Admin, method: "PATCH", path: "/captures/routes/{route}", body: columns, back: "/sources",
		fields: made("route", "Code", `{"source_schema": "public", "source_table": "orders", "sql_event": "insert", "domain": "shop", "type": "order", "payload_columns": ["id"]}`),
		warn:   "Once the capture is attached to its table, its changes make events. A route with this code is changed.",
	},
	"capture-route-delete": deletion("inbound route {route}", "/captures/routes/{route}", "route", "/sources", "Its trigger has to be detached. Its events stay."),
	"capture-detach": {
		title: "Detach capture from {table}", button: "Detach", role: Admin, method: "POST", path: "/captures/detach", dryRun: true, body: given("table"), danger: "table",
		back: "/sources", warn: "The triggers go: changes of the table make no events from then on.",
	},
	"type-set": {
		title: "Register an event type, or change one", button: "Register", role: Admin, method: "PUT", path: "/types/{domain}/{type}", body: columns, back: "/settings",
		fields: append([]field{{Name: "domain", Label: "Domain", Kind: "text", Required: true}}, made("type", "Type", `{"description": "An order was paid.", "enabled": true}`)...),
		warn:   keepsOthers + " A domain that is new is made.",
	},
	"type-delete": deletion("type {domain}/{type}", "/types/{domain}/{type}", "type", "/settings", "No route, no capture and no worker may name it. Its events stay, and are delivered."),
	"domain-set": {
		title: "Make a domain, or change one", button: "Set", role: Admin, method: "PUT", path: "/domains/{domain}", body: columns, back: "/settings",
		fields: made("domain", "Domain", `{"metadata_only": true, "payload_retention": "90 days"}`), warn: keepsOthers,
	},
	"domain-delete": deletion("domain {domain}", "/domains/{domain}", "domain", "/settings", "It may have no types, and nothing may name it. Its grants go."),
	"domain-grant": {
		title: "Let a role emit into domain {domain}", button: "Grant", role: Admin, method: "POST", path: "/domains/{domain}/grant", body: given("role"), danger: "domain", back: "/settings",
		fields: []field{{Name: "role", Label: "Role of the database", Kind: "text", Required: true, Help: "A login, or a role with logins as members."}},
		warn:   "From then on only roles with such a grant may emit into it.",
	},
	"domain-revoke": {
		title: "Revoke a role's grant on domain {domain}", button: "Revoke", role: Admin, method: "POST", path: "/domains/{domain}/revoke", body: given("role"), danger: "domain", back: "/settings",
		fields: []field{{Name: "role", Label: "Role of the database", Kind: "text", Required: true}}, warn: "Emits of that role are refused from then on. The domain stays restricted.",
	},
	"event-erase": {
		title: "Erase payloads of domain {domain}", button: "Erase", role: Admin, method: "POST", path: "/domains/{domain}/erase", dryRun: true, again: true, danger: "domain",
		fields: []field{
			{Name: "subject", Label: "Of this subject", Kind: "text", Help: "subject_ref of the events."},
			{Name: "key", Label: "Of this key", Kind: "text"},
			{Name: "before", Label: "Emitted before", Kind: "datetime-local", Help: "UTC"},
		},
		body: erased("subject", "key"),
		warn: "Payloads are gone for good: of events that fit all that you give, and of their dead letters; open ones are discarded. Evidence and order stay. " +
			"What is still to be delivered is left, and counted. Up to 10,000 events at a time. Targets and backups are not reached.",
	},
	"service-delete": deletion("service {service}", "/services/{service}", "service", "/commands", "It may have no commands, producers, keys and routes. Claims stay, and so does its role in the database."),
	"command-delete": deletion("command {command} version {version}", "/services/{service}/commands/{command}/{version}", "command", "/commands/{service}", "It has to be off, and nothing may use it. Claims stay."),
	"command-erase": {
		title: "Erase what is kept of commands of {service}", button: "Erase", role: Admin, method: "POST", path: "/services/{service}/erase", dryRun: true, danger: "service",
		fields: []field{
			{Name: "tenant", Label: "Of this tenant", Kind: "text"},
			{Name: "key", Label: "With this idempotency key", Kind: "text"},
			{Name: "before", Label: "That came to their state before", Kind: "datetime-local", Help: "UTC"},
		},
		body: erased("tenant", "key"),
		warn: "Results, raw records, and what dead letters keep are gone for good; open dead letters are discarded. Keys, states and times stay, so nothing runs twice. " +
			"Parked commands are left, and counted. Results in the log are events: erase those too.",
	},
	"key-add": {
		title: "Register a key of a producer of {service}", button: "Register", role: Admin, method: "POST", path: "/services/{service}/keys", danger: "service", back: "/commands/{service}",
		fields: []field{
			{Name: "kid", Label: "Key id", Kind: "text", Required: true, Help: "It is used once."},
			{Name: "producer", Label: "Producer", Kind: "text", Required: true},
			{Name: "public_key", Label: "Public key, as a JWK", Kind: "json", Required: true, Help: `{"kty": "OKP", "crv": "Ed25519", "x": "…"}. Never a private key.`},
			{Name: "tenants", Label: "Only for these tenants", Kind: "text", Help: "With commas between them; * is all. Empty: those of the allowlist."},
			{Name: "commands", Label: "Only for these commands", Kind: "text", Help: "With commas between them. Empty: those of the allowlist."},
		},
		body: func(v url.Values) map[string]any {
			return map[string]any{
				"kid": v.Get("kid"), "producer": v.Get("producer"), "public_key": asJSON(v.Get("public_key")), "tenants": several(v.Get("tenants")), "commands": several(v.Get("commands")),
			}
		},
		warn: "Commands of that producer that are signed with it are taken from now on.",
	},
	"key-delete": deletion("key {kid}", "/services/{service}/keys/{kid}", "kid", "/commands/{service}", "It has to be revoked, or to have expired."),
}

// deletion deletes what nothing uses. The database refuses it otherwise, and says what uses it.
func deletion(what, path, typed, back, warn string) act {
	return act{title: "Delete " + what, button: "Delete", role: Admin, method: "POST", path: path + "/delete", body: nothing, danger: typed, back: back, warn: warn}
}

// made asks for the name of a thing, and its columns.
func made(name, label, example string) []field {
	return append([]field{{Name: name, Label: label, Kind: "text", Required: true}}, columnsField(example)...)
}

// erased chooses what is erased by names and time.
func erased(names ...string) func(url.Values) map[string]any {
	return func(v url.Values) map[string]any {
		body := map[string]any{}
		for _, name := range names {
			body[name] = v.Get(name)
		}
		if before := instant(v.Get("before")); before != "" {
			body["before"] = before
		}
		if after := number(v.Get("after")); after > 0 {
			body["after"] = after
		}
		return body
	}
}

// asJSON is a value of a form as it was typed, since a float64 rounds long numbers. What is no JSON stays text, and the API refuses it.
func asJSON(text string) any {
	if !json.Valid([]byte(text)) {
		return text
	}
	return json.RawMessage(text)
}
