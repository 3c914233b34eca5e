package main

import "time"

// An arrival is a request as a receiver wrote it down, before it answered.
type arrival struct {
	At      time.Time
	Route   string
	Event   string // the header webhook-id
	ID      int64  // of the producer's journal
	Key     string
	Version int
	Epoch   int64
	Attempt int
	Replay  bool
	Answer  answer
}

// answer is what the receiver made of an arrival.
type answer uint8

const (
	taken   answer = iota // answered 200
	unheard               // taken, and the answer never left
	refused               // not taken, and said so
	poison                // refused for good
)

func (a answer) took() bool { return a == taken || a == unheard }

// A write is one event that a producer wanted to write.
type write struct {
	ID     int64
	Undone bool // by a rollback to a savepoint
}

// fate is what a producer knows of a transaction.
type fate uint8

const (
	unknown    fate = iota // the connection broke while it was to be committed
	committed              // acknowledged
	rolledBack             // asked for, or never asked to be committed
)

// A txn is a transaction of a producer.
type txn struct {
	Began  time.Time
	Ended  time.Time // when its fate was known
	Fate   fate
	Async  bool // committed without waiting for the disk: a crash may take it back
	Writes []write
}

// Stored is a row of the application's journal, as it is in the end.
type Stored struct {
	ID      int64
	Event   string
	Key     string
	Version int
	Kind    string
	Poison  string
}

// Effect is a row that the target of the SQL route wrote.
type Effect struct {
	N       int64 // rises in the order of the effects
	At      time.Time
	ID      int64
	Event   string
	Key     string
	Version int
}

// Letter is a dead letter.
type Letter struct {
	Route string
	Event string
}

// A closing is a time in which something must not deliver.
type closing struct {
	What   string
	Routes []string // empty: all
	Keeps  bool     // its events wait, and each of them comes later
	Sent   time.Time
	From   time.Time // the commit of the closing was acknowledged
	To     time.Time // the opening was sent
	Over   time.Time // and acknowledged
}

// A stop is a time in which a daemon was stopped by a signal.
type stop struct{ From, To time.Time }

// Sample is what a cursor of the log and its lease were at a moment.
type Sample struct {
	At        time.Time
	Shard     int
	Watermark int64
	Epoch     int64
}

// A replay is a dead letter that an operator sent again.
type replay struct {
	Route  string
	Event  string
	Inside bool // its outcome was there at once
	Known  bool // the commit was acknowledged, and nothing keeps it from coming
}
