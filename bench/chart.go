package main

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"os"
	"strconv"
	"strings"
)

// A bar is one contestant of a report.
type bar struct {
	name string
	rate float64
}

// chart draws the speeds of a report in results/ as SVG. The same report gives the same picture.
func chart(w io.Writer, path string) error {
	title, when, unit, bars, err := readReport(path)
	if err != nil {
		return err
	}
	var most float64
	for _, b := range bars {
		most = max(most, b.rate)
	}
	const row, top, left, width, right = 24, 56, 300, 400, 110
	height := top + row*len(bars) + 12
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">
<style>
text { font: 13px system-ui, sans-serif; fill: #222 } .title { font-size: 15px; font-weight: 600 } .small { font-size: 11px; fill: #666 }
.ours { fill: #0b6e99 } .other { fill: #a9b4bd }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .small { fill: #999 } .ours { fill: #4fb3d9 } .other { fill: #5d6770 } }
</style>
<text class="title" x="8" y="22">%s, %ss/s</text>
<text class="small" x="8" y="40">%s</text>
`, left+width+right, height, html.EscapeString(title), html.EscapeString(title), html.EscapeString(unit), html.EscapeString(when))
	for i, b := range bars {
		y, class := top+row*i, "other"
		if strings.HasPrefix(b.name, "tidemark") {
			class = "ours"
		}
		long := b.rate / most * width
		fmt.Fprintf(w, `<text x="%d" y="%d" text-anchor="end">%s</text><rect class="%s" x="%d" y="%d" width="%.1f" height="%d"/><text x="%.1f" y="%d">%s</text>`+"\n",
			left-8, y+13, html.EscapeString(b.name), class, left, y, long, row-8, left+long+6, y+13, thousands(b.rate))
	}
	_, err = fmt.Fprintln(w, "</svg>")
	return err
}

// readReport takes the contestants with a figure out of a report that this program wrote.
func readReport(path string) (title, when, unit string, bars []bar, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", "", "", nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		switch {
		case strings.HasPrefix(line, "# "):
			title = line[2:]
		case when == "" && line != "" && !strings.HasPrefix(line, "|"):
			when = line
		case len(cells) > 3 && cells[0] == "contestant":
			unit = strings.TrimSuffix(cells[1], "s")
		case len(cells) > 3 && unit != "":
			rate, err := strconv.ParseFloat(strings.ReplaceAll(cells[2], ",", ""), 64)
			if err == nil { // one without a figure has a dash
				bars = append(bars, bar{cells[0], rate})
			}
		}
	}
	if len(bars) == 0 {
		return "", "", "", nil, fmt.Errorf("%s has no table of results", path)
	}
	return title, when, unit, bars, lines.Err()
}
