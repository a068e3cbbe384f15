package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
)

// doors are the listeners of ports other than PORT, by number.
var doors = map[string]net.Listener{}

// openDoors opens those that are in $DOORS.
func openDoors() {
	for _, port := range strings.Fields(os.Getenv("DOORS")) {
		if err := openDoor(port); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

func openDoor(port string) error {
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	doors[port] = l
	go func() { _ = http.Serve(l, nil) }() // until it is shut
	return nil
}

// open and shut do so with port=PORT.
func open(w http.ResponseWriter, r *http.Request) {
	mu.Lock()
	defer mu.Unlock()
	if err := openDoor(r.FormValue("port")); err != nil {
		fmt.Fprintln(w, err)
	}
}

func shut(_ http.ResponseWriter, r *http.Request) {
	mu.Lock()
	defer mu.Unlock()
	doors[r.FormValue("port")].Close()
}
