package main

import "time"

// rowsOnce holds I2, I3, I4 and I8 for the rows of tables: each row that is stored was written down once, or is a dead
// letter because it is poison; what was deleted was written down once at most; what was rolled back was never written down.
func (c *checker) rowsOnce() {
	rows, noted, dead := map[RowLetter]*Row{}, map[RowLetter]int{}, map[RowLetter]bool{}
	for i := range c.Rows {
		rows[RowLetter{c.Rows[i].Source, c.Rows[i].Write}] = &c.Rows[i]
	}
	for _, l := range c.RowLetters {
		dead[l] = true
	}
	undone := c.undone()
	for i := range c.Notes {
		n := &c.Notes[i]
		id := RowLetter{n.Source, n.Write}
		noted[id]++
		switch r := rows[id]; {
		case noted[id] == 2:
			c.report("I4", "%s: row %s (write %d) was handled more than once", n.Source, n.ID, n.Write)
		case noted[id] > 2, r != nil && r.ID == n.ID && !r.Poison:
		case r != nil && r.Poison:
			c.report("I4", "%s: row %s (write %d) is poison, and what was done of it has remained", n.Source, n.ID, n.Write)
		case undone[n.Write]:
			c.report("I8", "%s: row %s (write %d) was handled and was rolled back", n.Source, n.ID, n.Write)
		default:
			c.report("I2", "%s: row %s (write %d) was handled and is not stored", n.Source, n.ID, n.Write)
		}
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		id := RowLetter{r.Source, r.Write}
		switch {
		case dead[id] && !r.Poison:
			c.report("I3", "%s: row %s (write %d) is a dead letter, and nothing is wrong with it", r.Source, r.ID, r.Write)
		case c.Unquiet != "" || dead[id] || noted[id] > 0 || r.Gone: // deleted, perhaps before it was read
		default:
			c.report("I3", "%s: row %s (write %d) was never handled", r.Source, r.ID, r.Write)
		}
	}
}

// undone are the writes that were rolled back.
func (c *checker) undone() map[int64]bool {
	undone := map[int64]bool{}
	for _, t := range c.Txns {
		for _, w := range t.Writes {
			undone[w.ID] = t.Fate == rolledBack || w.Undone
		}
	}
	return undone
}

// I6 for tables: they know the master gate. A pass looks at it after its last effect, so there is no second of grace.
func (c *checker) tablesAreSilent() {
	for _, x := range c.Closings {
		if x.What != masterGate {
			continue
		}
		for i := range c.Notes {
			if n := &c.Notes[i]; n.At.After(x.From) && n.At.Before(x.To) {
				c.report("I6", "%s: row %s was handled %s after %s was closed", n.Source, n.ID, n.At.Sub(x.From).Round(time.Millisecond), x.What)
			}
		}
	}
}

// told: of what breaks the reading of a table there is a finding, and nothing is read until an operator has said where to go
// on. What is silent is found, and nothing is found that is over (I11).
func (c *checker) told() {
	for _, x := range c.Changes {
		if !x.Told {
			c.report("I11", "%s: after its %s at %s no finding came", x.Source, x.What, clock(x.From))
		}
		for i := range c.Notes {
			if n := &c.Notes[i]; x.Strict && n.Source == x.Source && n.At.After(x.From) && n.At.Before(x.To) {
				c.report("I11", "%s: row %s (write %d) was handled %s after its %s, before that was accepted",
					n.Source, n.ID, n.Write, n.At.Sub(x.From).Round(time.Millisecond), x.What)
			}
		}
	}
	for _, p := range c.Probes {
		if !p.Opened || !p.Closed {
			c.report("I11", "%s was silent and came back: the finding opened %t, closed %t", p.Name, p.Opened, p.Closed)
		}
	}
	for _, f := range c.Findings {
		c.report("I11", "finding %s of %s is open, and all is well: %s", f.Kind, f.Subject, f.Detail)
	}
}
