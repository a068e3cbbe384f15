package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

//go:embed page.html style.css
var files embed.FS

// app answers every request.
type app struct {
	name   string // as pushed, from VCAP_APPLICATION
	index  string // of this instance
	start  time.Time
	visits atomic.Int64 // of the home page
	page   *template.Template
}

// answer is a whole response, so that one place writes and logs it.
type answer struct {
	status int
	kind   string // Content-Type
	body   []byte
	exit   bool // end the process once the response is out
}

func newApp() *app {
	var vcap struct {
		Name string `json:"application_name"`
	}
	if err := json.Unmarshal([]byte(env("VCAP_APPLICATION", "{}")), &vcap); err != nil || vcap.Name == "" {
		vcap.Name = "hello-go"
	}
	return &app{
		name:  vcap.Name,
		index: env("CF_INSTANCE_INDEX", "0"),
		start: time.Now(),
		page:  template.Must(template.ParseFS(files, "page.html")),
	}
}

// ServeHTTP answers and logs; health checks are not logged.
func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	got := a.answer(r)
	w.Header().Set("Content-Type", got.kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(got.body)))
	w.Header().Set("Vary", "Accept")
	w.WriteHeader(got.status)
	w.Write(got.body)
	if r.URL.Path != "/health" {
		fmt.Printf("%s %s %d %s\n", r.Method, r.URL.Path, got.status, time.Since(begin).Round(time.Microsecond))
	}
	if got.exit {
		if out, ok := w.(http.Flusher); ok {
			out.Flush()
		}
		fmt.Fprintf(os.Stderr, "%s: instance %s was asked to crash\n", a.name, a.index)
		os.Exit(1)
	}
}

func (a *app) answer(r *http.Request) answer {
	switch r.URL.Path {
	case "/":
		return a.home(r)
	case "/health":
		return text(http.StatusOK, "ok\n")
	case "/env":
		return text(http.StatusOK, environment())
	case "/slow":
		return slow(r)
	case "/crash":
		crash := text(http.StatusOK, "crashing\n")
		crash.exit = true
		return crash
	case "/style.css":
		css, _ := files.ReadFile("style.css")
		return answer{status: http.StatusOK, kind: "text/css; charset=utf-8", body: css}
	}
	fmt.Fprintf(os.Stderr, "no such page: %q\n", r.URL.Path)
	return text(http.StatusNotFound, "no such page\n")
}

// home is a page for browsers and one line for curl.
func (a *app) home(r *http.Request) answer {
	visits := a.visits.Add(1)
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		return text(http.StatusOK, fmt.Sprintf("hello from %s: instance %s, visit %d\n", a.name, a.index, visits))
	}
	var body bytes.Buffer
	err := a.page.Execute(&body, map[string]any{
		"Name": a.name, "Index": a.index, "Visits": visits, "Runtime": runtime.Version(),
		"Uptime": time.Since(a.start).Round(time.Second), "Memory": env("MEMORY_LIMIT", "none"),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return text(http.StatusInternalServerError, "the page did not render\n")
	}
	return answer{status: http.StatusOK, kind: "text/html; charset=utf-8", body: body.Bytes()}
}

// slow answers after ?ms= milliseconds (default 2000, at most 30000), or not at all when the client leaves.
func slow(r *http.Request) answer {
	ms, err := strconv.Atoi(r.URL.Query().Get("ms"))
	if err != nil || ms < 0 || ms > 30000 {
		ms = 2000
	}
	fmt.Printf("answering in %d ms\n", ms)
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
	return text(http.StatusOK, fmt.Sprintf("slept %d ms\n", ms))
}

func text(status int, body string) answer {
	return answer{status: status, kind: "text/plain; charset=utf-8", body: []byte(body)}
}
