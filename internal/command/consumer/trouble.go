package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// A trouble is what keeps this process from reading commands, beside what a partition meets. What lasts is a finding: worker_failing of
// the worker commands.
type trouble struct {
	mu    sync.Mutex
	why   error
	since time.Time
	told  string // by the finding that this process has opened; empty: none
	at    time.Time
}

const (
	tellEvery    = 30 * time.Second // another process may have told that all is well
	unfetchedFor = 15 * time.Second // a client tries again after 5 seconds at most
	slowFor      = 2 * askTime      // the next answer may take so long
)

func (t *trouble) bad(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why == nil {
		t.since = time.Now()
	}
	t.why = why
}

func (t *trouble) good() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.why = nil
}

// lasting is the trouble if it lasts for so long; nil: there is none.
func (t *trouble) lasting(d time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why == nil || time.Since(t.since) < d {
		return nil
	}
	return t.why
}

// patience is for how long a trouble is none: a session that has ended is followed by another one, which has to live for a while.
func (c *Consumer) patience() time.Duration { return 3 * c.pause() }

// pause is how long after a session that could not go on another one begins, and the age at which that counts as one that works.
func (c *Consumer) pause() time.Duration { return min(c.o.Lease, againAfter) }

// report opens or closes the finding. The first time that all is well it closes what a process before may have left.
func (c *Consumer) report(ctx context.Context) {
	t := &c.trouble
	detail := ""
	if why := t.lasting(c.patience()); why != nil {
		detail = "it cannot read commands from Kafka: " + why.Error()
	}
	t.mu.Lock()
	due := detail != t.told || detail != "" && time.Since(t.at) > tellEvery || detail == "" && t.at.IsZero() && t.why == nil
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if !due || store.New(c.db).CommandsFailing(ctx, detail) != nil {
		return // told again
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told, t.at = detail, time.Now()
}

// health is what keeps the session from its work; nil: nothing does, as far as is known.
func (s *session) health(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if err := s.client.Ping(ctx); err != nil {
		return fmt.Errorf("no broker answers: %w; see connections of the configuration", err)
	}
	s.mu.Lock()
	refused, unfetched := s.refused, s.unfetched
	if time.Since(s.at) > unfetchedFor {
		unfetched = nil
	}
	s.mu.Unlock()
	if err := cmp.Or(refused, unfetched, s.kept()); err != nil {
		return s.explained(err)
	}
	if err := s.frames.away(); err != nil {
		return err
	}
	s.Consumer.mu.Lock()
	slow := time.Since(s.slow) < slowFor
	s.Consumer.mu.Unlock()
	if slow {
		return fmt.Errorf("records of shared topics wait: the database took longer to answer which keys producers have than the answer counts (%v)", freshFor)
	}
	return s.strangers(ctx)
}

// explained says what to do about an error of the group or of a partition.
func (c *Consumer) explained(err error) error {
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return fmt.Errorf("the group %s: %w; tidemark command acl check SERVICE says what is missing", c.o.Group, err)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return fmt.Errorf("%w; tidemark command acl check SERVICE says what is missing", err)
	case errors.Is(err, kerr.InconsistentGroupProtocol), errors.Is(err, kerr.UnsupportedAssignor):
		return fmt.Errorf("the group %s is another application's: %w; name one of Tidemark's own in commands.group", c.o.Group, err)
	}
	return err
}

// strangers are members of the group that are none of Tidemark's: what they are assigned is not passed.
func (s *session) strangers(ctx context.Context) error {
	groups, err := kadm.NewClient(s.client).DescribeGroups(ctx, s.o.Group)
	if err != nil {
		return nil //nolint:nilerr // another protocol, or a right that is not needed otherwise
	}
	var others []string
	for _, m := range groups[s.o.Group].Members {
		if m.ClientID != s.id() && !slices.Contains(others, m.ClientID) {
			others = append(others, m.ClientID)
		}
	}
	if len(others) == 0 {
		return nil
	}
	slices.Sort(others)
	return fmt.Errorf("the group %s has members of another application (client id %s), which take partitions of commands; name one of Tidemark's own in commands.group",
		s.o.Group, strings.Join(others, ", "))
}
