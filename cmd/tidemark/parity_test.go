package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// inAPI is the operation of the API that does what a command does: METHOD PATH.
var inAPI = map[string]string{
	"activate": "PUT /gates/{gate}", "disable": "PUT /gates/{gate}", "gate open": "PUT /gates/{gate}", "gate close": "PUT /gates/{gate}",
	"capture attach": "POST /captures/attach", "capture detach": "POST /captures/detach", "capture reconcile": "POST /captures/emit",
	"capture route set": "PATCH /captures/routes/{route}", "capture route delete": "POST /captures/routes/{route}/delete",
	"command enable": "PATCH /services/{service}/commands/{command}/{version}", "command disable": "PATCH /services/{service}/commands/{command}/{version}",
	"command delete": "POST /services/{service}/commands/{command}/{version}/delete", "command discard": "POST /services/{service}/claims/{key}/discard",
	"command erase": "POST /services/{service}/erase", "command key add": "POST /services/{service}/keys", "command key delete": "POST /services/{service}/keys/{kid}/delete",
	"command key revoke": "POST /services/{service}/keys/{kid}/revoke", "command replay": "POST /services/{service}/replay", "command seek": "POST /topics/{topic}/partitions/{partition}/seek", "command service delete": "POST /services/{service}/delete",
	"dead-letter discard": "POST /dead-letters/{id}/discard", "dead-letter replay": "POST /dead-letters/replay", "dead-letter job cancel": "POST /dead-letter-jobs/{id}/cancel",
	"dead-letter job discard": "POST /dead-letter-jobs", "dead-letter job replay": "POST /dead-letter-jobs",
	"domain delete": "POST /domains/{domain}/delete", "domain grant": "POST /domains/{domain}/grant", "domain revoke": "POST /domains/{domain}/revoke", "domain set": "PUT /domains/{domain}",
	"event erase": "POST /domains/{domain}/erase", "finding ack": "POST /findings/{id}/acknowledge",
	"heartbeat register": "PUT /heartbeats/{executor}", "heartbeat deregister": "POST /heartbeats/{executor}/deregister",
	"maintain": "POST /maintain", "pack install": "POST /packs/{pack}/install", "pending discard": "POST /pending/discard", "pending retry": "POST /pending/retry",
	"route delete": "POST /routes/{route}/delete", "route disable": "PATCH /routes/{route}", "route enable": "PATCH /routes/{route}", "route go-live": "POST /routes/{route}/go-live",
	"route pause": "POST /routes/{route}/pause", "route resume": "POST /routes/{route}/resume",
	"route replay": "POST /routes/{route}/replay", "route set": "PUT /routes/{route}", "route test": "POST /routes/{route}/test",
	"setting set": "PUT /settings/{setting}", "source add": "PATCH /sources/{source}", "source set": "PATCH /sources/{source}", "source delete": "POST /sources/{source}/delete",
	"stage": "PUT /stage", "type delete": "POST /types/{domain}/{type}/delete", "type set": "PUT /types/{domain}/{type}",
	"worker attach": "POST /workers/{worker}/attach", "worker delete": "POST /workers/{worker}/delete", "worker detach": "POST /workers/{worker}/detach",
	"worker pause": "POST /workers/{worker}/pause", "worker resume": "POST /workers/{worker}/resume", "worker rewind": "POST /workers/{worker}/rewind", "worker set": "PUT /workers/{worker}",
}

// notInAPI is why the API does not do what a command does.
var notInAPI = map[string]string{
	"apply":            "the configuration is a file beside the caller's code",
	"plan":             "the configuration is a file beside the caller's code",
	"beat":             "a job beats for itself",
	"capture backfill": "it goes through a table page by page, for as long as that takes, as the owner of the table",
	"capture guard":    "only a superuser may",
	"command apply":    "a bundle is a folder beside the caller's code",
	"command diff":     "a bundle is a folder beside the caller's code",
	"command init":     "a bundle is a folder beside the caller's code",
	"command lint":     "a bundle is a folder beside the caller's code",
	"command test":     "a bundle is a folder beside the caller's code",
	"completion":       "it is for shells",
	"config":           "it is about a file of the caller",
	"healthcheck":      "it asks the daemon",
	"help":             "it is about commands",
	"version":          "it is about the program",
	"command send":     "a producer sends, and signs with its own key",
	"command watch":    "it follows results, and changes nothing",
	"console":          "it serves the API",
	"emit":             "applications emit, in their own transactions",
	"migrate":          "the installer has other rights than an operator",
	"uninstall":        "the installer has other rights than an operator",
	"run":              "it is the daemon",
	"stale-check":      "every daemon does it every 10 seconds",
	"worker run":       "it runs a handler with the rights of the caller",
}

// What the command line can do and the API cannot is a defect, unless there is a reason. Commands for readers change nothing.
func TestTheAPICanDoWhatCommandsDo(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../internal/api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		name := strings.TrimPrefix(cmd.CommandPath(), "tidemark ")
		role := cmd.Annotations["role"]
		if cmd.HasSubCommands() || !cmd.Runnable() || role == "tidemark_reader" {
			return
		}
		reasoned := slices.ContainsFunc([]string{name, strings.SplitN(name, " ", 2)[0]}, func(n string) bool { seen[n] = seen[n] || notInAPI[n] != ""; return notInAPI[n] != "" })
		method, path, _ := strings.Cut(inAPI[name], " ")
		seen[name] = true
		switch {
		case (inAPI[name] != "") == reasoned:
			t.Errorf("%s: it needs either an operation of the API or a reason why there is none", name)
		case !reasoned && document.Paths["/api/v1"+path][strings.ToLower(method)] == nil:
			t.Errorf("%s: the API has no %s", name, inAPI[name])
		}
	}
	walk(newRoot())
	if len(seen) < 50 {
		t.Errorf("only %d commands write", len(seen))
	}
	for _, all := range []map[string]string{inAPI, notInAPI} {
		for name := range all {
			if !seen[name] {
				t.Errorf("%s is no command that writes", name)
			}
		}
	}
}
