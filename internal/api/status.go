package api

import (
	"context"
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

type none struct{}

// Overview is the state of the installation, as the person sees it.
type Overview struct {
	store.Overview
	Tally
	You You `json:"you"`
}

// Tally is how many causes there are.
type Tally struct {
	Bad  int `json:"bad" doc:"Causes that are not warnings."`
	Warn int `json:"warn" doc:"Causes that are warnings."`
}

// Condition is how the installation is.
type Condition struct {
	Status string `json:"status" enum:"ok,warn,unknown,bad" doc:"The worst of the causes."`
	Tally
}

func tally(causes []store.Cause) (t Tally) {
	for _, c := range causes {
		if c.Status == "warn" {
			t.Warn++
		} else {
			t.Bad++
		}
	}
	return t
}

// You is who asks, and what he may do.
type You struct {
	Name     string `json:"name"`
	Role     string `json:"role" enum:"viewer,operator,admin"`
	ReadOnly bool   `json:"read_only"`
}

func (s *server) you(ctx context.Context) You {
	p, _ := PersonOf(ctx)
	return You{p.Name, p.Role.String(), s.ReadOnly}
}

func (s *server) status() {
	register(s, "GET", "/status", "The installation at a glance, and what is wrong with it", see, s.overview)
	register(s, "GET", "/health", "How many things are wrong", see, func(ctx context.Context, _ *none) (c Condition, err error) {
		causes, err := s.wrong(ctx, func() {})
		c.Status, c.Tally = "ok", tally(causes)
		if len(causes) > 0 {
			c.Status = causes[0].Status
		}
		return c, err
	})
	register(s, "GET", "/causes", "What is wrong, worst first", see,
		func(ctx context.Context, _ *none) ([]store.Cause, error) { return s.wrong(ctx, func() {}) })
	operation(s, "GET", "/history", "What a route, or all of them, did over time, in steps of a minute, 5 minutes or an hour", see,
		func(ctx context.Context, db *store.DB, in *struct {
			Route string `query:"route" doc:"Empty: all."`
			Hours int    `query:"hours" minimum:"1" maximum:"168" default:"1" doc:"How far back."`
		},
		) ([]store.HistoryStep, error) {
			return db.History(ctx, in.Route, time.Duration(in.Hours)*time.Hour)
		})
	operation(s, "GET", "/me", "Who asks, and what he may do", see,
		func(ctx context.Context, _ *store.DB, _ *none) (You, error) { return s.you(ctx), nil })
}

// overview finds what is wrong, and reads meanwhile what does not depend on it, on another connection. It asks for that connection only
// once the other has one: else all those of the pool could be held by requests that wait for their second.
func (s *server) overview(ctx context.Context, in *store.Most) (o Overview, err error) {
	EndShared(ctx)
	o.You = s.you(ctx)
	type told struct {
		causes []store.Cause
		err    error
	}
	begun, found := make(chan struct{}), make(chan told, 1)
	begin := sync.OnceFunc(func() { close(begun) })
	go func() {
		defer begin()
		causes, err := s.wrong(Unshared(ctx), begin)
		found <- told{causes, err}
	}()
	<-begun
	var wrong told
	heard := sync.OnceFunc(func() { wrong = <-found; o.Judge(wrong.causes) })
	err = s.transact(ctx, see, func(db *store.DB) error {
		err := db.ReadParts(ctx, &o.Overview, *in)
		if heard(); err != nil || wrong.err != nil || o.Partial {
			return err
		}
		return db.ReadRoutes(ctx, &o.Overview, *in)
	})
	heard()
	switch {
	case wrong.err != nil:
		return o, wrong.err
	case err != nil && !o.Partial:
		return o, err
	}
	o.Tally = tally(o.Causes)
	if o.Causes = o.Causes[min(in.Skip, len(o.Causes)):]; in.Causes > 0 {
		o.Causes = o.Causes[:min(len(o.Causes), in.Causes)]
	}
	return o, nil
}
