// Orders is a service that takes orders. It writes an order and its event in one transaction: no order lacks
// its event, and no event lacks its order.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	server := &http.Server{Addr: "127.0.0.1:8081", Handler: newService(pool), ReadTimeout: 10 * time.Second}
	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(stopped)
		_ = server.Shutdown(context.WithoutCancel(ctx)) // waits for the requests under way
	})
	log.Printf("PUT http://%s/orders/ID", server.Addr)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Print(err)
		return
	}
	<-stopped
}

type order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
}

type service struct{ pool *pgxpool.Pool }

func newService(pool *pgxpool.Pool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /orders/{id}", service{pool}.put)
	return mux
}

func (s service) put(w http.ResponseWriter, r *http.Request) {
	var o order
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&o); err != nil {
		http.Error(w, "not an order: "+err.Error(), http.StatusBadRequest)
		return
	}
	o.ID = r.PathValue("id")
	event, err := s.take(r.Context(), o)
	var refused *pgconn.PgError
	switch {
	case errors.Is(err, errTaken):
		http.Error(w, err.Error(), http.StatusConflict)
	case errors.As(err, &refused) && refused.Code == "23514": // the table's check constraint
		http.Error(w, refused.Message, http.StatusUnprocessableEntity)
	case err != nil:
		log.Print(err)
		http.Error(w, "try again", http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"event": event})
	}
}

var errTaken = errors.New("another order has this id")

// take may be called again with the same order: it stores one order and one event, and returns the event, which
// is empty for an order from before the column event_id. It returns errTaken if the id has an order with other contents.
func (s service) take(ctx context.Context, o order) (event string, err error) {
	payload, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `insert into orders (id, customer, cents) values ($1, $2, $3) on conflict do nothing`,
			o.ID, o.Customer, o.Cents)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			// No second event: an idempotency key is forgotten after a time, the order's row is not.
			err := tx.QueryRow(ctx, `select coalesce(event_id, '') from orders where id = $1 and (customer, cents) = ($2, $3)`,
				o.ID, o.Customer, o.Cents).Scan(&event)
			if errors.Is(err, pgx.ErrNoRows) {
				return errTaken
			}
			return err
		}
		event, err = tidemark.Emit(ctx, tx, tidemark.Event{
			Domain: "shop", Type: "order.created", Payload: payload,
			Key: o.ID, SubjectTable: "orders", SubjectRef: o.ID,
		})
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update orders set event_id = $2 where id = $1`, o.ID, event)
		return err
	})
	return event, err
}
