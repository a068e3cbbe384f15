// Command hello-postgres keeps notes in the PostgreSQL database that it is bound to.
//
// It finds the database in VCAP_SERVICES, and says so where there is none.
package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	_ "github.com/lib/pq"
)

func main() {
	db, err := open(os.Getenv("VCAP_SERVICES"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("/", notes{db, err})
	srv := &http.Server{Addr: ":" + os.Getenv("PORT"), Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintln(os.Stderr, srv.ListenAndServe())
	os.Exit(1)
}

// open opens the first database that the app is bound to.
func open(services string) (*sql.DB, error) {
	var bound map[string][]struct {
		Credentials struct{ URI string }
	}
	if err := json.Unmarshal([]byte(services), &bound); err != nil {
		return nil, fmt.Errorf("read VCAP_SERVICES: %w", err)
	}
	for _, b := range bound["postgres"] {
		return sql.Open("postgres", b.Credentials.URI)
	}
	return nil, errors.New("bind me to a database: cf create-service postgres small notes && cf bind-service hello-postgres notes && cf restart hello-postgres")
}
