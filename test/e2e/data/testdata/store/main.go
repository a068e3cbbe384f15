// Store is a server that keeps values for users, the client that changes its users, and an
// app that uses it: what a test has an operator's service file for.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const dir = "/var/store"

func main() {
	var err error
	switch os.Args[1] {
	case "serve":
		err = serve(os.Args[2])
	case "add":
		err = write(filepath.Join(dir, "users", os.Args[2]), os.Args[3])
	case "delete":
		err = os.RemoveAll(filepath.Join(dir, "users", os.Args[2]))
	case "app":
		err = http.ListenAndServe(":"+os.Getenv("PORT"), http.HandlerFunc(app))
	}
	if err != nil {
		log.Fatal(err)
	}
}

// write keeps a value so that a power cut does not lose it.
func write(path, value string) error {
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	if _, err := f.WriteString(value); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func serve(port string) error {
	for _, name := range []string{"users", "rows"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	log.Print("serving edition ", os.Getenv("EDITION"), " with the root password ", os.Getenv("ROOT_PASSWORD"))
	http.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/rows/{row}", func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		known, err := os.ReadFile(filepath.Join(dir, "users", filepath.Base(user)))
		if root := os.Getenv("ROOT_PASSWORD"); (err != nil || string(known) != password) && (user != "root" || password != root) {
			http.Error(w, "forbidden", http.StatusForbidden)
			return
		}
		row := filepath.Join(dir, "rows", r.PathValue("row"))
		if r.Method == http.MethodPut {
			value, _ := io.ReadAll(r.Body)
			if err := write(row, string(value)); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
			return
		}
		value, _ := os.ReadFile(row)
		fmt.Fprintf(w, "%s %s by %d in %s MB", os.Getenv("EDITION"), value, os.Getuid(), os.Getenv("SIZE"))
	})
	return http.ListenAndServe(":"+port, nil)
}

// app does what a request asks for, "PUT row value" or "GET row", with the store that the app is bound to.
func app(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	words := strings.SplitN(string(body), " ", 3)
	if len(words) < 3 {
		fmt.Fprint(w, "hello")
		return
	}
	var services map[string][]struct{ Credentials struct{ URI string } }
	_ = json.Unmarshal([]byte(os.Getenv("VCAP_SERVICES")), &services)
	uri := "http://nowhere"
	for _, s := range services["store"] {
		uri = s.Credentials.URI
	}
	q, err := http.NewRequest(words[0], uri+"/rows/"+words[1], strings.NewReader(words[2]))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	res, err := (&http.Client{Timeout: 3 * time.Second}).Do(q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body)
}
