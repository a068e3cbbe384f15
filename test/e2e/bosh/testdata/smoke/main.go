// Command smoke is an errand: it tells each NATS server something over TLS, and
// has it heard at every other one, whatever name it is known by.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Println("smoke:", err)
		os.Exit(1)
	}
}

func run(ca string, urls []string) error {
	var all []*nats.Conn
	for _, url := range urls {
		c, err := nats.Connect(url, nats.RootCAs(ca), nats.Timeout(10*time.Second))
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		defer c.Close()
		all = append(all, c)
	}
	for n, from := range all {
		for m, to := range all {
			heard, err := to.SubscribeSync("smoke")
			if err != nil {
				return err
			}
			if err := hears(from, to, heard); err != nil {
				return fmt.Errorf("from %d to %d: %w", n, m, err)
			}
		}
	}
	fmt.Printf("all %d connections hear each other\n", len(all))
	return nil
}

// hears says something until it is heard: servers tell each other who listens.
func hears(from, to *nats.Conn, heard *nats.Subscription) error {
	defer heard.Unsubscribe()
	if err := to.Flush(); err != nil {
		return err
	}
	for range 50 {
		if err := from.Publish("smoke", []byte("hello")); err != nil {
			return err
		}
		if _, err := heard.NextMsg(200 * time.Millisecond); err == nil {
			return nil
		}
	}
	return fmt.Errorf("nothing was heard")
}
