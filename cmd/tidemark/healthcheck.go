package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/config"
)

// healthTimeout is below the 30 s that Docker waits, and above the daemon's own timeouts
// for its checks.
const healthTimeout = 3 * time.Second

func newHealthcheck(a *app) *cobra.Command {
	var file, address string
	var live bool
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask a daemon whether it is ready, for images without a shell",
		Long: `Ask a daemon whether it is ready, or with --live whether its process must be started
anew, and print its answer. The exit status is 0 or 1.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.printer(cmd)
			if err != nil {
				return err
			}
			if address == "" {
				c, err := a.loadConfig(p, file)
				if err != nil {
					return err
				}
				if address = adminURL(c.Admin); address == "" {
					return hinted{errors.New("the admin server is off: admin.listen is empty"), "Name another with --url."}
				}
			}
			return healthcheck(cmd.Context(), p, address, live)
		},
	}
	cmd.Flags().StringVar(&address, "url", "", "the daemon's admin server; default: that of the configuration")
	cmd.Flags().BoolVar(&live, "live", false, "ask /livez and not /readyz")
	configFlag(cmd, &file)
	return cmd
}

// adminURL is where this host reaches a server that listens as the configuration says.
func adminURL(c config.Admin) string {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return ""
	}
	switch at, err := netip.ParseAddr(host); {
	case host == "", err == nil && at.IsUnspecified() && at.Is4():
		host = "127.0.0.1"
	case err == nil && at.IsUnspecified():
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

func healthcheck(ctx context.Context, p *printer, address string, live bool) error {
	at, err := url.Parse(address)
	if err != nil || (at.Scheme != "http" && at.Scheme != "https") || at.Host == "" {
		return usagef("--url must be http://HOST:PORT")
	}
	page, wrong := "readyz", "not ready"
	if live {
		page, wrong = "livez", "not alive"
	}
	at = at.JoinPath(page)
	status, body, err := ask(ctx, at, p.json)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		// Not wrapped: the loss of a connection has the status of the database's.
		return fmt.Errorf("cannot ask %s: %s", at.Redacted(), err.Error())
	}
	if p.json && !json.Valid(body) {
		return fmt.Errorf("%s answers %d, and not as a daemon does", at.Redacted(), status)
	}
	for line := range strings.Lines(string(body)) {
		if err := p.linef("%s", strings.TrimRight(line, "\r\n")); err != nil {
			return err
		}
	}
	if status != http.StatusOK {
		return fmt.Errorf("%s: %d %s", wrong, status, http.StatusText(status))
	}
	return nil
}

func ask(ctx context.Context, at *url.URL, asJSON bool) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String()+"?verbose", http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	if asJSON {
		request.Header.Set("Accept", "application/json")
	}
	client := http.Client{
		// No proxy: it is about this host, whatever HTTP_PROXY says.
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the address, which the caller names
	}
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, 64<<10))
	return response.StatusCode, body, err
}
