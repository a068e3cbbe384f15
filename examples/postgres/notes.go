package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"time"
)

// notes answers with all notes, and takes the body of a POST as one more. A note is kept once its answer is out.
type notes struct {
	db  *sql.DB
	err error // why there is no database
}

const longestNote = 1 << 10

func (n notes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	text, err := n.answer(ctx, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprint(w, text)
}

func (n notes) answer(ctx context.Context, r *http.Request) (string, error) {
	if n.err != nil {
		return "", n.err
	}
	if _, err := n.db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS notes (id SERIAL PRIMARY KEY, text TEXT NOT NULL)`); err != nil {
		return "", err
	}
	if r.Method == http.MethodPost {
		note, err := io.ReadAll(io.LimitReader(r.Body, longestNote))
		if err != nil {
			return "", err
		}
		_, err = n.db.ExecContext(ctx, `INSERT INTO notes (text) VALUES ($1)`, string(note))
		return "kept\n", err
	}
	return n.list(ctx)
}

func (n notes) list(ctx context.Context) (text string, err error) {
	rows, err := n.db.QueryContext(ctx, `SELECT id, text FROM notes ORDER BY id`)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	for rows.Next() {
		var id int
		var note string
		if err := rows.Scan(&id, &note); err != nil {
			return "", err
		}
		text += fmt.Sprintf("%d %s\n", id, note)
	}
	return text, rows.Err()
}
