package main

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
)

// file tells a file's mode, what comes of writing to it, and its content.
func file(w http.ResponseWriter, r *http.Request) {
	path := r.FormValue("path")
	info, err := os.Stat(path)
	if err != nil {
		fmt.Fprintln(w, err)
		return
	}
	content, err := os.ReadFile(path)
	if err != nil {
		fmt.Fprintln(w, err)
		return
	}
	written := "written"
	if f, err := os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		written = err.Error()
	} else {
		f.Close()
	}
	fmt.Fprintf(w, "%v\n%s\n%s", info.Mode(), written, content)
}

func environ(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(w, strings.Join(os.Environ(), "\n"))
}

var (
	mu     sync.Mutex
	status = map[string]int{}
)

// never is the status of a check that gets no answer.
const never = 1

// health answers a check of a name as it was last told to by set=STATUS.
func health(w http.ResponseWriter, r *http.Request) {
	name := r.FormValue("name")
	mu.Lock()
	code, err := strconv.Atoi(r.FormValue("set"))
	if err == nil {
		status[name] = code
		mu.Unlock()
		return
	}
	code = status[name]
	mu.Unlock()
	switch code {
	case 0:
	case never:
		<-r.Context().Done()
	default:
		w.WriteHeader(code)
	}
}
