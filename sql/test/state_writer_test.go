package test

import (
	"fmt"
	"slices"
)

// A writer of the application: it locks a key's row, and then writes with that key.
type writer struct {
	actor
	inside bool // in a transaction
	locked []string
	points []savepoint
	wrote  []*item
}

type savepoint struct{ wrote, locked int }

const keys = 3

// steps are what the writer can do now.
func (w *writer) steps() []step {
	if w.flying != nil { // it waits for a key
		return []step{w.step(1, "dies", w.end(undone, w.die))}
	}
	if !w.inside {
		return []step{
			w.step(8, "begins", func() { w.must("begin"); w.inside = true }),
			w.step(4, "writes", func() { w.write(""); w.finish(committed) }),
		}
	}
	list := []step{
		w.step(6, "writes", func() { w.write("") }),
		w.step(6, "commits", w.end(committed, func() { w.must("commit") })),
		w.step(2, "rolls back", w.end(undone, func() { w.must("rollback") })),
		w.step(1, "dies", w.end(undone, w.die)),
		w.step(2, "sets a savepoint", func() {
			w.must(fmt.Sprintf("savepoint s%d", len(w.points)))
			w.points = append(w.points, savepoint{len(w.wrote), len(w.locked)})
		}),
	}
	// In rising order, so that no two wait for each other.
	for k := range keys {
		if key := fmt.Sprintf("k%d", k); len(w.locked) == 0 || slices.Max(w.locked) < key {
			list = append(list, w.step(4, "locks "+key, func() {
				w.start(func(got answer) {
					if got.err != nil {
						w.m.t.Fatal(got.err)
					}
					w.locked = append(w.locked, key)
				}, `select n from key_row where key = $1 for update`, key)
			}))
		}
	}
	for _, key := range w.locked {
		list = append(list, w.step(8, "writes "+key, func() { w.write(key) }))
	}
	if len(w.points) > 0 {
		list = append(list, w.step(2, "rolls back to its savepoint", func() {
			last := len(w.points) - 1
			w.must(fmt.Sprintf("rollback to savepoint s%d", last))
			for _, i := range w.wrote[w.points[last].wrote:] {
				i.state = undone
			}
			w.wrote, w.locked = w.wrote[:w.points[last].wrote], w.locked[:w.points[last].locked]
		}), w.step(1, "releases its savepoint", func() {
			last := len(w.points) - 1
			w.must(fmt.Sprintf("release savepoint s%d", last))
			w.points = w.points[:last]
		}))
	}
	if len(w.m.prepared) < 2 {
		list = append(list, w.step(4, "prepares", func() {
			w.m.gids++
			gid := fmt.Sprintf("%s-%d", w.m.db.Name, w.m.gids)
			w.must("prepare transaction '" + gid + "'")
			w.m.prepared = append(w.m.prepared, prepared{gid, w.wrote})
			w.forget()
		}))
	}
	return list
}

func (w *writer) step(weight int, what string, do func()) step {
	return step{w.name, what, weight, do}
}

func (w *writer) end(as state, how func()) func() {
	return func() { how(); w.finish(as) }
}

func (w *writer) finish(as state) {
	for _, i := range w.wrote {
		i.state = as
	}
	w.forget()
}

func (w *writer) forget() { w.inside, w.locked, w.points, w.wrote = false, nil, nil, nil }

// write never waits: the lock of its key is held.
func (w *writer) write(key string) {
	i, err := w.m.subject.write(w, key)
	if err != nil {
		w.m.t.Fatalf("%s writes: %v", w.name, err)
	}
	w.m.model.items[i.id] = i
	w.wrote = append(w.wrote, i)
}

// A prepared transaction belongs to no session: the eye ends it.
type prepared struct {
	gid   string
	wrote []*item
}

func (m *machine) resolutions() []step {
	var list []step
	for n, p := range m.prepared {
		end := func(as state, verb string) step {
			return step{"", fmt.Sprintf("the prepared transaction %d: %s", n, verb), 1, func() {
				m.must(verb + " prepared '" + p.gid + "'")
				for _, i := range p.wrote {
					i.state = as
				}
				m.prepared = slices.Delete(m.prepared, n, n+1)
			}}
		}
		list = append(list, end(committed, "commit"), end(undone, "rollback"))
	}
	return list
}
