package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
)

// listeners are those of ports other than PORT, by number.
var listeners = map[string]net.Listener{}

// openListeners opens the ports in $LISTEN_PORTS.
func openListeners() {
	for _, port := range strings.Fields(os.Getenv("LISTEN_PORTS")) {
		if err := openListener(port); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

func openListener(port string) error {
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	listeners[port] = l
	go func() { _ = http.Serve(l, nil) }() // until it is shut
	return nil
}

// open and shut do so with port=PORT.
func open(w http.ResponseWriter, r *http.Request) {
	mu.Lock()
	defer mu.Unlock()
	if err := openListener(r.FormValue("port")); err != nil {
		fmt.Fprintln(w, err)
	}
}

func shut(_ http.ResponseWriter, r *http.Request) {
	mu.Lock()
	defer mu.Unlock()
	listeners[r.FormValue("port")].Close()
}
