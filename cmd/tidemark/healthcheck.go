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

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/config"
)

// healthTimeout is below the 30 s that Docker waits, and above the daemon's timeouts of its own checks.
const healthTimeout = 3 * time.Second

func healthcheckCommand() cli.Command {
	var file, address string
	var live bool
	return cli.Command{
		Use: "healthcheck", Short: "Ask a daemon whether it is ready, for images without a shell", Needs: cli.Nothing,
		Long: `Ask a daemon whether it is ready, or with --live whether its process must be restarted, and print its answer.
The exit status is 0 or 1.`,
		Example: "  tidemark healthcheck --url http://127.0.0.1:9321",
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&address, "url", "", "the daemon's admin server; default: that of the configuration")
			flags.BoolVar(&live, "live", false, "ask /livez instead of /readyz")
			cli.ConfigFlag(flags, &file)
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			if address == "" {
				c, err := s.LoadConfig(file)
				if err != nil {
					return err
				}
				if address = adminURL(c.Admin); address == "" {
					return cli.Hint(errors.New("the admin server is off: admin.listen is empty"), "Name another with --url.")
				}
			}
			return healthcheck(ctx, s.Printer, address, live)
		},
	}
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

func healthcheck(ctx context.Context, p *cli.Printer, address string, live bool) error {
	at, err := url.Parse(address)
	if err != nil || (at.Scheme != "http" && at.Scheme != "https") || at.Host == "" {
		return cli.Usagef("--url must be http://HOST:PORT")
	}
	at = at.JoinPath(cli.Choose(live, "livez", "readyz"))
	status, body, err := ask(ctx, at, p.JSON)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		// Not wrapped: a lost connection has the exit status of the database's.
		return fmt.Errorf("cannot ask %s: %s", at.Redacted(), err.Error())
	}
	if p.JSON && !json.Valid(body) {
		return fmt.Errorf("%s answers %d, and not as a daemon does", at.Redacted(), status)
	}
	for line := range strings.Lines(string(body)) {
		p.Line("%s", strings.TrimRight(line, "\r\n"))
	}
	if status != http.StatusOK {
		return fmt.Errorf("not %s: %d %s", cli.Choose(live, "alive", "ready"), status, http.StatusText(status))
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
		// No proxy: the question is about this host, whatever HTTP_PROXY says.
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
