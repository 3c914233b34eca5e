package main

import "context"

const stockSuffix = ", stock server"

// stockServer is a second server, which has PostgreSQL's defaults alone. Contestants share it.
type stockServer struct{ env *env }

// onStock runs another contestant there.
type onStock struct {
	contestant
	from   *env
	server *stockServer
	make   func(*env) contestant
}

func newOnStock(e *env, server *stockServer, make func(*env) contestant) *onStock {
	return &onStock{contestant: make(e), from: e, server: server, make: make}
}

func (c *onStock) Name() string { return c.contestant.Name() + stockSuffix }

func (c *onStock) Setup(ctx context.Context) error {
	if c.server.env == nil {
		o := c.from.options
		o.url, o.stock = "", true
		there, err := newEnv(ctx, o)
		if err != nil {
			return err
		}
		c.server.env = there
		c.from.others = append(c.from.others, there)
	}
	c.contestant = c.make(c.server.env)
	return c.contestant.Setup(ctx)
}

func (c *onStock) Figures() map[string]float64 {
	if f, ok := c.contestant.(figurer); ok {
		return f.Figures()
	}
	return nil
}

func (c *onStock) measured() *env { return c.server.env }
