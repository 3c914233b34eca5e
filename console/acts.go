package console

import (
	"cmp"
	"maps"
	"net/url"
	"strings"
)

// acts are all acts by name.
var acts = joined(operating, configuring)

func joined(parts ...map[string]act) map[string]act {
	all := map[string]act{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// notOfAPause is what the summary of a route has beside its state and what waits.
var notOfAPause = []string{"route_code", "worker", "target_kind", "sent", "retried", "dead", "open_dead_letters"}

// operating are acts on what runs.
var operating = map[string]act{
	"gate-open": {
		title: "Open gate {gate}", button: "Open the gate", role: Operator, method: "PUT", path: "/gates/{gate}", body: constant("open", true),
		danger: "gate", preview: "/outlook?gate={gate}", shows: outlook, back: "/settings", warn: "The workers behind it begin within a second.",
	},
	"gate-close": {
		title: "Close gate {gate}", button: "Close the gate", role: Operator, method: "PUT", path: "/gates/{gate}", body: constant("open", false),
		danger: "gate", back: "/settings", warn: "Workers behind the gate stop within a second. Events wait until it is open again; nothing is lost.",
	},
	"stage-live": {
		title: "Set the stage live", button: "Go live", role: Admin, method: "PUT", path: "/stage", body: constant("stage", "live"),
		typed: "live", preview: "/outlook", shows: outlook, back: "/settings",
		warn: "Enabled routes that are not in dry run deliver from now on.",
	},
	"stage-dry-run": {
		title: "Set the stage to dry_run", button: "Leave live", role: Admin, method: "PUT", path: "/stage", body: constant("stage", "dry_run"),
		typed: "dry_run", back: "/settings", warn: "Workers with live routes stop within a second; events wait until the stage is live again. Nothing is lost.",
	},
	"route-enable": {
		title: "Enable route {route}", button: "Enable", role: Admin, method: "PATCH", path: "/routes/{route}", body: set("enabled", true),
		preview: "/routes/{route}/backtest", shows: lastHour, back: "/routes/{route}",
		warn: "It takes the events that it claims from now on, and those that wait for it. In dry run it records what it would deliver.",
	},
	"route-disable": {
		title: "Disable route {route}", button: "Disable", role: Admin, method: "PATCH", path: "/routes/{route}", body: set("enabled", false),
		danger: "route", back: "/routes/{route}", warn: "Events that pass while it is disabled are recorded as disabled, and not sent later unless you replay them.",
	},
	"route-live": {
		title: "Take route {route} out of dry run", button: "Deliver from now on", role: Admin, method: "PATCH", path: "/routes/{route}", body: set("dry_run", false),
		danger: "route", preview: "/routes/{route}/backtest", shows: lastHour, back: "/routes/{route}",
		warn: "If it is enabled, it delivers the events that it claims from now on. Those that it has only recorded are not sent, unless you replay them.",
	},
	"route-dry-run": {
		title: "Put route {route} into dry run", button: "Only record", role: Admin, method: "PATCH", path: "/routes/{route}", body: set("dry_run", true),
		danger: "route", back: "/routes/{route}", warn: "Events that pass are recorded as dry_run, and not sent later unless you replay them.",
	},
	"route-pause": {
		title: "Pause route {route}", button: "Pause", role: Operator, method: "POST", path: "/routes/{route}/pause", body: nothing, danger: "route",
		preview: "/route-summaries?routes={route}", leaves: notOfAPause, back: "/routes/{route}",
		warn: "No delivery of it begins any more, within a second; those under way may end, but a Go handler at work is rolled back, and called again after the resume. Its events wait, in order, and so do retries, replays and dead letters. " +
			"Nothing is lost, and no attempt is used up. A test delivery still goes.",
	},
	"route-resume": {
		title: "Resume route {route}", button: "Resume", role: Operator, method: "POST", path: "/routes/{route}/resume", body: nothing,
		preview: "/route-summaries?routes={route}", leaves: notOfAPause, back: "/routes/{route}",
		warn: "What is due is tried at once, in order, as fast as the target takes it; retries and parked events at their time. Test the target first.",
	},
	"route-edit": {
		title: "Edit route {route}", button: "Change", role: Admin, method: "PATCH", path: "/routes/{route}", body: columns, fields: columnsField(`{"concurrency": 8, "timeout": "10s"}`),
		danger: "route", preview: "/routes/{route}", back: "/routes/{route}", warn: keepsOthers + " The next events go by the new ones.",
	},
	"route-test": {
		title: "Test the target of route {route}", button: "Send one test delivery", role: Operator, method: "POST", path: "/routes/{route}/test", body: nothing,
		warn: "It is signed and marked as a test, and goes to the target now, even if the route is off, in dry run or paused. A target inside the database " +
			"is called, and its effects are undone. A closed gate or a stage that is not live refuses it.",
	},
	"route-replay": {
		title: "Send events on route {route} again", button: "Send", role: Operator, method: "POST", path: "/routes/{route}/replay", danger: "route", dryRun: true,
		fields: []field{
			{Name: "from_seq", Label: "From event number", Kind: "number"},
			{Name: "to_seq", Label: "To event number", Kind: "number"},
			{Name: "since", Label: "Or emitted since", Kind: "datetime-local", Help: "UTC"},
			{Name: "key", Label: "Only this key", Kind: "text"},
			{Name: "rate", Label: "At most events a second", Kind: "number", How: true, Help: "Empty: as many as the route takes."},
		},
		body: window, back: "/routes/{route}", warn: "The worker of the route sends them beside live events, in the order of numbers. It goes on whether this page is open or not.",
	},
	"replay-cancel": {
		title: "Cancel replay {id}", button: "Cancel the replay", role: Operator, method: "POST", path: "/replays/{id}/cancel", body: nothing, back: "/",
		warn: "What was sent stays sent. Up to 1,000 events that its worker has taken already are still sent.",
	},
	"pending-retry": {
		title: "Try {item} now", button: "Try now", role: Operator, method: "POST", path: "/pending/retry", body: waiting, back: "/waiting",
		warn: "Its worker tries it within a second, if its gates and its route are open. While the breaker of its target is open, it waits for that.",
	},
	"pending-retry-all": {
		title: "Try all that waits of route {route} now", button: "Try all now", role: Operator, method: "POST", path: "/pending/retry", body: waiting, back: "/waiting",
		danger: "route", preview: "/route-summaries?routes={route}",
		warn: "What failed and waits for another attempt is due at once, up to 10,000 deliveries. Do it once the target is well again.",
	},
	"pending-park": {
		title: "Park {item}", button: "Park", role: Operator, method: "POST", path: "/pending/retry", back: "/waiting",
		fields: []field{{Name: "until", Label: "Not before", Kind: "datetime-local", Required: true, Help: "UTC. At most 30 days from now."}},
		body: func(v url.Values) map[string]any {
			body := waiting(v)
			body["not_before"] = instant(v.Get("until"))
			return body
		},
		warn: "It is not tried before that time. Later events of its key wait behind it.",
	},
	"pending-discard": {
		title: "Give up {item}", button: "Give up", role: Operator, method: "POST", path: "/pending/discard", body: waiting, danger: "item", back: "/dead-letters",
		preview: "/events/{item}/why?route={route}", shows: "Why it waits",
		warn: "It has failed for good, and becomes a dead letter, which can be tried again. The next event of its key is due.",
	},
	"letter-replay": {
		title: "Try dead letter {id} again", button: "Try again", role: Operator, method: "POST", path: "/dead-letters/replay", dryRun: true, body: letter,
		warn: "Its event or row is delivered once more: at once to a target inside the database, else by the daemon. If it fails again, it stays open.",
	},
	"letters-replay": {
		title: "Try dead letters again", button: "Try again", role: Operator, method: "POST", path: "/dead-letter-jobs", dryRun: true, body: job("replay"),
		fields: []field{
			{Name: "rate", Label: "At most letters a second", Kind: "number", How: true, Help: "Empty: as many as the route takes."},
		},
		typed: "replay", back: "/dead-letters", done: "job", warn: "Each is delivered once more, the oldest event first: the first 100 at once, the others by a daemon, whether this page is open or not. " +
			"Those that fail again stay open.",
	},
	"letters-discard": {
		title: "Discard dead letters", button: "Discard", role: Operator, method: "POST", path: "/dead-letter-jobs", dryRun: true, body: job("discard"),
		typed: "discard", back: "/dead-letters", done: "job", warn: "They will never be delivered. They stay on record. The first 100 are discarded at once, the others by a daemon.",
	},
	"letters-chosen-replay": {
		title: "Try dead letters {ids} again", button: "Try again", role: Operator, method: "POST", path: "/dead-letters/replay", dryRun: true, body: chosen,
		typed: "replay", warn: "Each is delivered once more: at once to a target inside the database, else by the daemon. Those that fail again stay open.",
	},
	"letters-chosen-discard": {
		title: "Discard dead letters {ids}", button: "Discard", role: Operator, method: "POST", path: "/dead-letters/discard", dryRun: true, body: chosen,
		typed: "discard", back: "/dead-letters", warn: "They will never be delivered. They stay on record.",
	},
	"letter-job-cancel": {
		title: "Cancel job {id}", button: "Cancel the job", role: Operator, method: "POST", path: "/dead-letter-jobs/{id}/cancel", body: nothing, back: "/dead-letters",
		warn: "What it has done stays done.",
	},
	"letter-discard": {
		title: "Discard dead letter {id}", button: "Discard", role: Operator, method: "POST", path: "/dead-letters/{id}/discard", body: nothing, danger: "id",
		preview: "/dead-letters/{id}", back: "/dead-letters", warn: "It will never be delivered. It stays on record.",
	},
	"worker-pause": {
		title: "Pause worker {worker}", button: "Pause", role: Operator, method: "POST", path: "/workers/{worker}/pause", body: nothing, danger: "worker",
		back: "/workers/{worker}", warn: "It stops where it stands. Events wait.",
	},
	"worker-resume": {
		title: "Resume worker {worker}", button: "Resume", role: Operator, method: "POST", path: "/workers/{worker}/resume", body: nothing, back: "/workers/{worker}",
		warn: "It goes on where it stopped, if its gates are open.",
	},
	"worker-rewind": {
		title: "Rewind worker {worker}", button: "Rewind", role: Admin, method: "POST", path: "/workers/{worker}/rewind", danger: "worker", dryRun: true,
		fields: []field{{Name: "to_seq", Label: "Decide the events above this number again", Kind: "number", Required: true}},
		body:   func(v url.Values) map[string]any { return map[string]any{"to_seq": number(v.Get("to_seq"))} },
		back:   "/workers/{worker}", warn: "Events that a route has decided stay decided; to send those again, replay them on the route. Events without a record of a route are decided now, and delivered where it is live.",
	},
	"worker-edit": {
		title: "Edit worker {worker}", button: "Change", role: Admin, method: "PATCH", path: "/workers/{worker}", body: columns, fields: columnsField(`{"hole_limit": 20000, "description": "Nightly."}`),
		danger: "worker", preview: "/workers/{worker}", back: "/workers/{worker}", warn: keepsOthers,
	},
	"source-rewind": {
		title: "Rewind worker {worker} in {source}", button: "Rewind", role: Admin, method: "POST", path: "/workers/{worker}/source-rewind", danger: "source", dryRun: true,
		fields: []field{
			{Name: "to_time", Label: "To this time", Kind: "datetime-local", Help: "UTC. Rows of that time and later are handled again."},
			{Name: "to_id", Label: "Or to this number", Kind: "text", Help: "Of a source that is read by number: rows after it are handled again."},
		},
		body: func(v url.Values) map[string]any {
			body := map[string]any{"source": v.Get("source"), "to_id": v.Get("to_id")}
			if at := instant(v.Get("to_time")); at != "" {
				body["to_time"] = at
			}
			return body
		},
		back: "/workers/{worker}", warn: "Its handler gets the rows from there on once more, and must tolerate that. With neither it accepts the place where a finding holds it.",
	},
	"source-edit": {
		title: "Edit source {source}", button: "Change", role: Admin, method: "PATCH", path: "/sources/{source}", body: columns, fields: columnsField(`{"timestamp_column": "updated_at", "safety": "clock"}`),
		danger: "source", preview: "/sources/{source}", back: "/sources/{source}", warn: keepsOthers + " Its workers read by the new ones in their next pass.",
	},
	"gap-emit": {
		title: "Emit the missing events of gap {id}", button: "Emit", role: Admin, method: "POST", path: "/capture-gaps/{id}/emit", body: nothing, danger: "id",
		back: "/sources", warn: "Each row without an event gets one, with the row as it is now.",
	},
	"gap-accept": {
		title: "Accept gap {id}", button: "Accept", role: Admin, method: "POST", path: "/capture-gaps/{id}/accept", body: nothing, danger: "id",
		back: "/sources", warn: "These rows never get an event.",
	},
	"capture-attach": {
		title: "Attach capture to {table}", button: "Attach", role: Admin, method: "POST", path: "/captures/attach", dryRun: true, body: given("table"),
		back: "/sources", warn: "The statements below put triggers on the table, or enable those that are off. Writers of the table wait for a moment.",
	},
	"capture-emit": {
		title: "Emit the missing events of {table}", button: "Emit", role: Admin, method: "POST", path: "/captures/emit", danger: "table", body: given("table"),
		back: "/sources", warn: "Each row of its gaps without an event gets one, with the row as it is now.",
	},
	"capture-route-edit": {
		title: "Edit inbound route {route}", button: "Change", role: Admin, method: "PATCH", path: "/captures/routes/{route}", body: columns, fields: columnsField(`{"payload_columns": ["id", "total"]}`),
		danger: "route", preview: "/captures", back: "/sources", warn: keepsOthers + " The table's next changes make events by the new ones.",
	},
	"setting-set": {
		title: "Change setting {setting}", button: "Change", role: Admin, method: "PUT", path: "/settings/{setting}", danger: "setting",
		fields: []field{{Name: "value", Label: "New value", Kind: "text", Required: true}}, body: given("value"), back: "/settings",
		warn: "It counts from the next transaction on. A shorter retention deletes events that no worker needs, and what is deleted cannot be replayed.",
	},
	"type-enable": {
		title: "Enable type {domain}/{type}", button: "Enable the type", role: Admin, method: "PUT", path: "/types/{domain}/{type}", body: set("enabled", true),
		back: "/settings", warn: "Emits of it are stored from now on, and go to the routes that claim them. If the name is a misspelling, correct the emitter instead.",
	},
	"verify": {
		title: "Verify the installation", button: "Verify", role: Operator, method: "POST", path: "/verify", body: nothing, back: "/findings", done: "verify",
		warn: "It compares the whole log with its evidence, in the background: some 10 to 30 seconds for each million events, on one connection of the console. " +
			"It changes nothing and delays no delivery. While it runs, sources with the safety clock read no new rows, and vacuum keeps rows that are dead.",
	},
	"verify-cancel": {
		title: "Cancel the verification", button: "Cancel it", role: Operator, method: "POST", path: "/verify/cancel", body: nothing, back: "/findings",
		warn: "What it has found so far is not known.",
	},
	"maintain": {
		title: "Run upkeep now", button: "Run upkeep", role: Operator, method: "POST", path: "/maintain", body: nothing,
		warn: "What a daemon does each minute: partitions ahead, retention, findings that are over, captured tables compared.",
	},
	"command-enable": {
		title: "Enable command {command} version {version}", button: "Enable", role: Admin, method: "PATCH",
		path: "/services/{service}/commands/{command}/{version}", body: set("enabled", true), back: "/commands/{service}",
		warn: "Calls of it run from now on, and its records in Kafka that wait. In dry run each is rolled back.",
	},
	"command-disable": {
		title: "Disable command {command} version {version}", button: "Disable", role: Admin, method: "PATCH", danger: "command",
		path: "/services/{service}/commands/{command}/{version}", body: set("enabled", false), back: "/commands/{service}",
		warn: "Its records in Kafka wait until it is enabled again; other calls are refused. Where its when_disabled is reject, all are rejected.",
	},
	"command-live": {
		title: "Take command {command} version {version} out of dry run", button: "Run from now on", role: Admin, method: "PATCH", danger: "command",
		path: "/services/{service}/commands/{command}/{version}", body: set("dry_run", false), back: "/commands/{service}",
		warn: "Calls of it that come from now on take effect.",
	},
	"command-dry-run": {
		title: "Put command {command} version {version} into dry run", button: "Only try", role: Admin, method: "PATCH", danger: "command",
		path: "/services/{service}/commands/{command}/{version}", body: set("dry_run", true), back: "/commands/{service}",
		warn: "Each call of it is run and rolled back: its result says dry_run, and nothing changes.",
	},
	"command-discard": {
		title: "Give up command {key} of {service}", button: "Give up", role: Operator, method: "POST", path: "/services/{service}/claims/{key}/discard", body: nothing,
		danger: "key", preview: "/services/{service}/claims/{key}", back: "/commands/{service}/{key}", warn: "It has failed for good, with a result and a dead letter. The next command of its ordering key is due.",
	},
	"commands-replay": {
		title: "Try parked commands of {service} again", button: "Try again", role: Operator, method: "POST", path: "/services/{service}/replay", danger: "service", dryRun: true, again: true,
		warn: "Up to 500 at a time: those that are parked, and those that were only run dry. What was processed never runs again.",
		body: func(v url.Values) map[string]any {
			return map[string]any{"code": v.Get("code"), "after": number(v.Get("after"))}
		},
	},
	"partition-seek": {
		title: "Go on in partition {partition} of {topic}", button: "Seek", role: Admin, method: "POST", path: "/topics/{topic}/partitions/{partition}/seek", danger: "topic",
		preview: "/workers/commands", part: "leases", shows: "Where the partitions are now",
		fields: []field{{Name: "next", Label: "Offset of the next record", Kind: "number", Required: true}},
		body:   func(v url.Values) map[string]any { return map[string]any{"next": number(v.Get("next"))} },
		back:   "/workers/commands", warn: "Records that are passed over are not read. Commands that were claimed before do not run again.",
	},
	"key-revoke": {
		title: "Revoke key {kid}", button: "Revoke", role: Admin, method: "POST", path: "/services/{service}/keys/{kid}/revoke", body: nothing, danger: "kid",
		back: "/commands/{service}", warn: "Commands signed with it are refused from now on.",
	},
	"finding-acknowledge": {
		title: "Acknowledge finding {id}", button: "Acknowledge", role: Operator, method: "POST", path: "/findings/{id}/acknowledge", body: nothing, back: "/findings",
		warn: "It stays open until its cause is gone; others see that someone knows.",
	},
	"heartbeat-register": {
		title: "Expect heartbeats of an executor", button: "Register", role: Admin, method: "PUT", path: "/heartbeats/{executor}", body: registration, back: "/heartbeats",
		warn: "If it is silent for longer than its threshold, a finding opens and an event system/queue_worker_silent is emitted. An executor that is " +
			"registered already is changed. It sends heartbeats with tidemark beat or tidemark.heartbeat_write.",
		fields: []field{
			{Name: "executor", Label: "Executor", Kind: "text", Required: true, Help: "What runs and where, such as nightly_export or mailer/host-7."},
			{Name: "cadence", Label: "A heartbeat every so many seconds", Kind: "number", Required: true},
			{Name: "threshold", Label: "Silent after so many seconds", Kind: "number", Help: "Empty: three times as long."},
			{Name: "kind", Label: "Kind", Kind: "text", Help: "Empty: external_worker, or as it is."},
			{Name: "domains", Label: "Domains that it covers", Kind: "text", Help: "With commas between them. Empty: all."},
		},
	},
	"pack-install": {
		title: "Install pack {pack}", button: "Install", role: Admin, method: "POST", path: "/packs/{pack}/install", body: nothing, danger: "pack",
		preview: "/packs/{pack}", warn: "It adds domains, event types, routes and workers. Switches that an operator has set stay as they are.",
	},
	"heartbeat-deregister": {
		title: "Forget executor {executor}", button: "Forget", role: Admin, method: "POST", path: "/heartbeats/{executor}/deregister", body: nothing, danger: "executor",
		back: "/heartbeats", warn: "Its silence raises no alarm any more. If it beats again, it is known again.",
	},
}

// waiting names what waits: an event on a route, or a row of a worker's source.
func waiting(v url.Values) map[string]any {
	body := map[string]any{}
	for _, name := range []string{"route", "worker", "source", "item"} {
		if v.Get(name) != "" {
			body[name] = v.Get(name)
		}
	}
	return body
}

// registration is what is expected of an executor.
func registration(v url.Values) map[string]any {
	body := map[string]any{"cadence_seconds": number(v.Get("cadence")), "threshold_seconds": number(v.Get("threshold")), "kind": v.Get("kind")}
	if domains := several(v.Get("domains")); len(domains) > 0 {
		body["domains"] = domains
	}
	return body
}

// several are the names of a form's list.
func several(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// letter chooses one dead letter.
func letter(v url.Values) map[string]any { return map[string]any{"ids": []int64{number(v.Get("id"))}} }

// chosen chooses several dead letters.
func chosen(v url.Values) map[string]any {
	ids := []int64{}
	for _, id := range v["ids"] {
		ids = append(ids, number(id))
	}
	return map[string]any{"ids": ids}
}

// job chooses dead letters by route, source and code.
func job(action string) func(url.Values) map[string]any {
	return func(v url.Values) map[string]any {
		body := map[string]any{"action": action, "route": v.Get("route"), "source": v.Get("source"), "code": v.Get("code")}
		if rate := number(v.Get("rate")); rate > 0 {
			body["rate"] = rate
		}
		return body
	}
}

// window chooses events of the log.
func window(v url.Values) map[string]any {
	body := map[string]any{"key": v.Get("key")}
	for _, name := range []string{"from_seq", "to_seq"} {
		if v.Get(name) != "" {
			body[name] = number(v.Get(name))
		}
	}
	if since := instant(v.Get("since")); since != "" {
		body["since"] = since
	}
	if rate := number(v.Get("rate")); rate > 0 {
		body["rate"] = rate
	}
	return body
}

// instant is a time of a form, which is in UTC, as the API has it.
func instant(text string) string {
	if len(text) == len("2006-01-02T15:04") {
		return text + ":00Z"
	}
	return text
}

// set changes columns of a configuration row.
func set(pairs ...any) func(url.Values) map[string]any {
	return func(url.Values) map[string]any {
		columns := map[string]any{}
		for i := 0; i+1 < len(pairs); i += 2 {
			columns[pairs[i].(string)] = pairs[i+1]
		}
		return map[string]any{"set": columns}
	}
}

func constant(pairs ...any) func(url.Values) map[string]any {
	return func(url.Values) map[string]any {
		body := map[string]any{}
		for i := 0; i+1 < len(pairs); i += 2 {
			body[pairs[i].(string)] = pairs[i+1]
		}
		return body
	}
}

func nothing(url.Values) map[string]any { return map[string]any{} }

// given passes a parameter of the link on.
func given(name string) func(url.Values) map[string]any {
	return func(v url.Values) map[string]any { return map[string]any{name: v.Get(name)} }
}

// columns sets what an editor's form has changed: its fields are JSON values by column.
func columns(v url.Values) map[string]any {
	return map[string]any{"set": asJSON(cmp.Or(strings.TrimSpace(v.Get("columns")), "{}"))}
}

const (
	outlook     = "What the workers would do with what waits"
	lastHour    = "What it would have done with the last hour"
	keepsOthers = "The columns that you name are changed, the others stay."
)

// columnsField asks for columns of a configuration row.
func columnsField(example string) []field {
	return []field{{Name: "columns", Label: "Columns to set, as a JSON object", Kind: "json", Value: "{}", Help: "Such as " + example + ": the names above in small letters, with _ between words."}}
}
