// Command pod is what runs in the pods of tests. Without arguments it keeps a
// pod's namespaces until a signal; its first argument is what it does instead.
package main

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

const usage = `usage: pod                 wait for a signal
       pod serve ADDR      answer HTTP requests with the host's name, until a signal
       pod exit CODE       exit`

func main() {
	switch args := os.Args[1:]; {
	case len(args) == 0:
		wait()
	case args[0] == "serve" && len(args) == 2:
		go wait()
		serve(args[1])
	case args[0] == "exit" && len(args) == 2:
		code, err := strconv.Atoi(args[1])
		if err != nil {
			fail(err)
		}
		os.Exit(code)
	default:
		fail(usage)
	}
}

// wait exits with the first signal that asks for it.
func wait() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	<-signals
	os.Exit(0)
}

func serve(addr string) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _ := os.Hostname()
		fmt.Println(r.Method, r.URL.Path)
		fmt.Fprintln(w, host)
	})
	server := &http.Server{Addr: addr, Handler: handler, ReadHeaderTimeout: time.Minute}
	fmt.Println("listening at", addr)
	fail(server.ListenAndServe())
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, "pod:", why)
	os.Exit(2)
}
