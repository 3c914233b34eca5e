package incidents

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

var pictures = flag.String("pictures", "", "write pictures to this folder: go test ./test/incidents -run 'TestPictures|TestDashboardPictures' -pictures ../../docs/images")

// shop is an installation that has worked for a day. What its workers sent in that time is made up; all else happens.
const shop = `
select tidemark.type_set('shop', t, format('{"description": "%s"}', d)::jsonb) from (values
	('order.paid', 'A customer has paid an order.'), ('order.shipped', 'A parcel has left the warehouse.'), ('order.cancelled', 'An order will not be shipped.')) v (t, d);
create function public.mail(event jsonb) returns void language plpgsql as $$
	begin
		if event ->> 'key' like '%7' then
			raise exception 'customer % has no e-mail address', event ->> 'key' using errcode = '23502';
		end if;
	end $$;
select tidemark.route_set('mailer', '{"domain": "shop", "type": "order.paid", "target_kind": "sql", "target_ref": "public.mail", "enabled": true, "dry_run": false,
	"description": "Thanks the customer.", "retry_policy": {"max_attempts": 1}}');
select tidemark.route_set('search', '{"domain": "shop", "target_kind": "notify", "target_ref": "search", "enabled": true, "description": "Keeps the index of orders up to date."}');
select tidemark.route_set('partner', '{"domain": "shop", "type": "order.shipped", "target_kind": "webhook", "target_ref": "https://partner.example.com/parcels", "options": {"unsigned": true}}');
select tidemark.heartbeat_register('nightly_export', 'external_worker', '{}', '1 day'), tidemark.heartbeat_write('nightly_export', 'ok');
create schema app;
create table app.charge (id bigint primary key, cents int not null check (cents > 0));
create function app.charge(payload jsonb) returns jsonb language sql as
	'insert into app.charge select (payload ->> ''id'')::bigint, (payload ->> ''cents'')::int; select jsonb_build_object(''id'', payload -> ''id'')';
select tidemark.service_set('payments', '{"description": "Takes money."}');
grant usage on schema app to tidemark_service_payments; grant all on app.charge to tidemark_service_payments;
select tidemark.command_set('payments', 'charge.capture', 1, '{"function": "app.charge", "enabled": true, "payload_schema": {"type": "object", "required": ["id", "cents"]}}'),
	tidemark.command_set('payments', 'charge.refund', 1, '{"function": "app.charge"}');
select tidemark.command_allow('payments', 'checkout', tenants => '{*}'),
	tidemark.gate_set('commands.enabled', true), tidemark.gate_set('commands.payments.enabled', true);
select tidemark.route_set('results', '{"domain": "commands", "type": "result.payments", "target_kind": "notify", "target_ref": "results", "enabled": true, "dry_run": false}');
select tidemark.command_set('payments', 'charge.capture', 1, '{"dry_run": false}', 'tested in staging');
select tidemark.command_run(jsonb_build_object('event_id', gen_random_uuid(), 'service', 'payments', 'command', 'charge.capture', 'command_version', 1, 'schema_version', 1,
	'payload', jsonb_build_object('id', i, 'cents', 1900), 'idempotency_key', 'order-' || i, 'occurred_at', now(), 'trace_id', md5(i::text), 'metadata', '{"producer": "checkout"}'::jsonb)) from generate_series(1, 5) i`

const shopsDay = `
insert into tidemark.route_minute (route_id, at, sent, retried, failed, waiting)
select r.id, date_bin('1 minute', now(), 'epoch') - n * interval '1 minute', s, s / 60, (r.route_code = 'mailer')::int * s / 10, s / 30
from tidemark.outbound_route r cross join generate_series(1, 1500) n cross join lateral (select (30 + 25 * sin(n / 229.0) + n % 7)::int as s) s
where r.route_code in ('billing', 'warehouse', 'mailer') on conflict do nothing;
insert into tidemark.log_minute (at, last_seq)
select date_bin('1 minute', now(), 'epoch') - n * interval '1 minute', -sum(33 + 25 * sin(n / 229.0) + n % 7) over (order by n)::bigint from generate_series(1, 1500) n
on conflict do nothing`

// at are the pages that have pictures: their name, and whether they have one in the dark and on a telephone too.
var at = []struct {
	name, path string
	all        bool
}{
	{"overview", "/", true},
	{"routes", "/routes", false},
	{"route", "/routes/mailer", false},
	{"events", "/events", false},
	{"event", "/events/$?why=billing", true},
	{"waiting", "/waiting", false},
	{"dead-letters", "/dead-letters", false},
	{"dead-letter", "/dead-letters/1", false},
	{"workers", "/workers", false},
	{"worker", "/workers/default", false},
	{"tables", "/sources", false},
	{"source", "/sources/births", false},
	{"commands", "/commands", false},
	{"service", "/commands/payments", false},
	{"command", "/commands/payments/order-1", false},
	{"heartbeats", "/heartbeats", false},
	{"findings", "/findings", false},
	{"audit", "/audit", false},
	{"settings", "/settings", false},
	{"act", "/act/letters-replay?route=mailer", true},
}

// TestPictures makes the pictures of docs/images: each page of the console in a night with incidents.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("it writes to docs: give -pictures")
	}
	server := testserver.New(t, devpg.Options{})
	made := tidemarktest.NewDBAt(t, server.URL("postgres"))
	made.Pool.Close()
	(&night{DB: &tidemarktest.DB{URL: server.URL("postgres")}, t: t}).psql("alter database " + made.Name + " rename to shop") // its name is on the first page
	db := &tidemarktest.DB{URL: server.URL("shop"), Name: "shop"}
	var err error
	if db.Pool, err = pgxpool.New(t.Context(), db.URL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Pool.Close)
	n := begin(t, db)
	var refuses atomic.Bool
	bills := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		if refuses.Load() {
			http.Error(w, "no signature of a known secret", http.StatusUnauthorized)
		}
	}))
	t.Cleanup(bills.Close)
	warehouse := newReceiver(t)
	n.exec(shop)
	n.route("billing", "webhook", bills.URL, billing+`, "description": "Invoices what is paid."`)
	n.route("warehouse", "webhook", warehouse.URL, billing+`, "description": "Packs what is paid."`)
	n.source("clock")
	n.exec(`select tidemark.source_set('births', '{"sweep_window": "2 hours"}')`)
	n.captured()
	n.daemon(billingSecret)
	emit := func(from, to int) {
		n.exec(fmt.Sprintf(`select tidemark.emit('shop', 'order.paid', jsonb_build_object('order', i, 'total', 1900 + i, 'currency', 'EUR'), key => i::text) from generate_series(%d, %d) i`, from, to))
	}
	emit(1, 240)
	n.exec(`insert into public.births (name, at) select 'n', now() - interval '74 hours' from generate_series(1, 40)`)
	n.until("all is delivered", func() bool { return warehouse.events() == 240 })
	n.exec(shopsDay)

	n.exec(`select tidemark.gate_set('worker.greeter.enabled', false, 'the registry moves')`)
	n.exec(`set session_replication_role = replica; update tidemark.audit set at = at - interval '3 days';
		update tidemark.worker_cursor set last_run_at = last_run_at - interval '3 days', verified_through = now() - interval '102 hours' where worker = 'greeter'; reset session_replication_role;
		insert into public.births (name, at) select 'n', now() - interval '3 days' from generate_series(1, 18)`)
	refuses.Store(true)
	emit(241, 300)
	n.exec(`select tidemark.emit('shop', 'order.piad', key => '301')`)
	n.exec(`alter table public.orders disable trigger tidemark_capture_insert`)
	n.exec(`insert into public.orders (name) select 'b' from generate_series(1, 15)`)
	n.happens()
	n.sees("bad", "credentials_refused billing", `, 60 wait`)
	n.sees("bad", "capture_disabled public.orders")
	n.sees("warn", "gate_closed worker.greeter.enabled")
	seq := n.value(`select max(seq)::text from tidemark.outbox where type = 'order.paid'`)

	if err := chromium.start(); err != nil {
		t.Fatalf("Chromium: %v: scripts/tools.sh installs it", err)
	}
	address := n.console()
	tab, cancel := chromedp.NewContext(chromium.ctx)
	t.Cleanup(cancel)
	shoot := func(name, path, theme string, width int64) {
		_, err := chromedp.Call(tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
		if err != nil {
			t.Fatal(err)
		}
		n.do(tab, chromedp.EmulateViewport(width, 800), chromedp.Navigate(address+path))
		shot, err := chromedp.Run(tab, chromedp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*pictures, "console-"+name+".png"), fewColors(t, shot, tallest), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range at {
		path := strings.TrimPrefix(strings.Replace(p.path, "$", seq, 1), "/")
		shoot(p.name, path, "light", 1280)
		if p.all {
			shoot(p.name+"-dark", path, "dark", 1280)
			shoot(p.name+"-narrow", path, "light", 390)
		}
	}
}

// tallest is where a picture of a longer page ends.
const tallest = 1300

// fewColors makes a screenshot a third of its size, and at most so high: with the 256 colors that most of its points have.
func fewColors(t *testing.T, shot []byte, tallest int) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	count := map[color.RGBA]int{}
	box := full.Bounds()
	box.Max.Y = min(box.Max.Y, tallest)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			count[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++
		}
	}
	var colors []color.RGBA
	for c := range count {
		colors = append(colors, c)
	}
	slices.SortFunc(colors, func(a, b color.RGBA) int { return count[b] - count[a] })
	palette := color.Palette{}
	for _, c := range colors[:min(len(colors), 256)] {
		palette = append(palette, c)
	}
	few := image.NewPaletted(box, palette)
	nearest := map[color.RGBA]uint8{}
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			c := color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)
			i, known := nearest[c]
			if !known {
				i = uint8(palette.Index(c))
				nearest[c] = i
			}
			few.SetColorIndex(x, y, i)
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
