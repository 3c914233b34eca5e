package runtimes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/consoleserver"
)

// Console runs a console of a database until the test ends, and returns its address. A token with the name of a role has it.
func Console(t testing.TB, databaseURL string) string {
	t.Helper()
	c := config.Default()
	c.Database.URL = config.NewSecret(databaseURL)
	c.Console.Listen = "127.0.0.1:0"
	c.Console.Tokens = map[string]config.ConsoleToken{}
	for _, role := range []string{"viewer", "operator", "admin"} {
		sum := sha256.Sum256([]byte(role))
		c.Console.Tokens[role] = config.ConsoleToken{SHA256: config.NewSecret(hex.EncodeToString(sum[:])), Role: role}
	}
	s, err := consoleserver.New(t.Context(), c, nil, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(running) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s.URL(c.Console)
}
