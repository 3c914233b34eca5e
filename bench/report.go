package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

type report struct {
	env      *env
	workload workload
	results  results
}

// wrong tells whether a contestant failed for another reason than being absent.
func (r report) wrong() bool {
	for _, c := range r.results {
		if c.err != nil && !c.skipped() {
			return true
		}
	}
	return false
}

// verdicts prints which contestants gave what they should.
func (r report) verdicts() {
	for _, c := range r.results {
		verdict := "ok"
		if c.err != nil {
			verdict = c.err.Error()
		}
		fmt.Printf("W%s  %-60s %s\n", r.workload.number, c.name, verdict)
	}
}

// publish prints the report and keeps it as Markdown in dir.
func (r report) publish(dir string) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nW%s: %s\n\n", r.workload.number, r.workload.title)
	for _, row := range r.rows() {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	fmt.Fprintln(w)
	for _, g := range r.workload.reach(r.results) {
		fmt.Fprintln(w, g)
	}
	if err := w.Flush(); err != nil || dir == "" {
		return err
	}
	if r.env.only != "" {
		return nil // a part of the table would replace all of it
	}

	now := time.Now()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	name := fmt.Sprintf("%s-w%s.md", now.Format("2006-01-02"), r.workload.number)
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	r.markdown(f, now)
	return f.Close()
}

func (r report) markdown(w io.Writer, now time.Time) {
	fmt.Fprintf(w, "# W%s · %s\n\n", r.workload.number, r.workload.title)
	fmt.Fprintf(w, "%s. %s. %d rounds, interleaved; medians.\n\n", now.Format("2006-01-02 15:04 MST"), r.env.machine(), r.env.rounds)
	for i, row := range r.rows() {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(w, "|%s\n", strings.Repeat(" --- |", len(row)))
		}
	}
	fmt.Fprintln(w)
	for _, g := range r.workload.reach(r.results) {
		fmt.Fprintf(w, "- %s\n", g)
	}
}

func (r report) rows() [][]string {
	unit := r.workload.unit
	head := []string{"contestant", unit + "s", unit + "s/s", "min–max"}
	head = append(head, r.workload.columns...)
	head = append(head, "CPU µs/"+unit, "WAL B/"+unit)
	for _, b := range r.workload.baselines {
		head = append(head, "÷ "+b)
	}
	rows := [][]string{head}
	for _, c := range r.results {
		rows = append(rows, r.row(c))
	}
	return rows
}

func (r report) row(c result) []string {
	if c.err != nil {
		text := strings.ReplaceAll(c.err.Error(), "\n", " ")
		row := slices.Repeat([]string{"–"}, 4+len(r.workload.columns)+len(r.workload.baselines))
		return append(append([]string{c.name}, row...), text)
	}
	lo, hi := c.samples[0].rate(), c.samples[0].rate()
	for _, s := range c.samples {
		lo, hi = min(lo, s.rate()), max(hi, s.rate())
	}
	rate, _ := r.results.of(c.name, sample.rate)
	cpu, _ := r.results.of(c.name, sample.cpuPerItem)
	wal, _ := r.results.of(c.name, sample.walPerItem)
	items, _ := r.results.of(c.name, func(s sample) float64 { return float64(s.items) })
	row := []string{c.name, thousands(items), thousands(rate), thousands(lo) + "–" + thousands(hi)}
	for _, name := range r.workload.columns {
		cell := "–"
		if _, ok := c.samples[0].figures[name]; ok {
			v, _ := r.results.of(c.name, figureOf(name))
			cell = fmt.Sprintf("%.2f", v)
		}
		row = append(row, cell)
	}
	if r.env.meter.cpu.known() {
		row = append(row, fmt.Sprintf("%.1f", cpu))
	} else {
		row = append(row, "–")
	}
	row = append(row, fmt.Sprintf("%.0f", wal))
	for _, b := range r.workload.baselines {
		cell := "–"
		if ratio, ok := r.results.ratio(c.name, b); ok {
			cell = fmt.Sprintf("%.2f", ratio)
		}
		row = append(row, cell)
	}
	return row
}

// thousands writes a number with separators: 1,234,567.
func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
