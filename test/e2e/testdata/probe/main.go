// Command probe is an app that does, when it is asked to, what containers hold
// apps back from.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"
)

func main() {
	if len(os.Args) > 1 {
		os.Exit(command(os.Args[1], os.Args[2:]))
	}
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ready") })
	http.HandleFunc("/read", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	http.HandleFunc("/back", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	http.HandleFunc("/trace", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, r.Header["Traceparent"]) })
	http.HandleFunc("/early", early)
	http.HandleFunc("/dial", dial)
	http.HandleFunc("/fetch", fetch)
	http.HandleFunc("/lookup", lookUp)
	http.HandleFunc("/resolv.conf", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "/etc/resolv.conf") })
	http.HandleFunc("/eat", eat)
	http.HandleFunc("/fill", fill)
	http.HandleFunc("/file", file)
	http.HandleFunc("/env", environ)
	http.HandleFunc("/health", health)
	http.HandleFunc("/open", open)
	http.HandleFunc("/shut", shut)
	http.HandleFunc("/rotated", rotated)
	http.HandleFunc("/die", die)
	http.HandleFunc("/orphans", orphans)
	http.HandleFunc("/zombies", zombies)
	http.HandleFunc("/websocket", echo)
	openListeners()
	fmt.Println(http.ListenAndServe(":"+os.Getenv("PORT"), nil))
	os.Exit(1)
}

// dial says whether to=HOST:PORT takes connections.
func dial(w http.ResponseWriter, r *http.Request) {
	c, err := net.DialTimeout("tcp", r.FormValue("to"), 3*time.Second)
	if err != nil {
		fmt.Fprintln(w, err)
		return
	}
	c.Close()
	fmt.Fprintln(w, "reached")
}

// early begins its answer before it reads the body.
func early(w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	_ = rc.EnableFullDuplex()
	fmt.Fprintln(w, "begun")
	_ = rc.Flush()
	n, err := io.Copy(io.Discard, r.Body)
	fmt.Fprintln(w, n, err)
}

// echo sends a websocket's messages back.
func echo(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		kind, text, err := c.Read(r.Context())
		if err != nil || c.Write(r.Context(), kind, text) != nil {
			return
		}
	}
}

// lookUp says which addresses a name has.
func lookUp(w http.ResponseWriter, r *http.Request) {
	addrs, err := net.DefaultResolver.LookupHost(r.Context(), r.FormValue("name"))
	if err != nil {
		fmt.Fprintln(w, err)
		return
	}
	slices.Sort(addrs)
	fmt.Fprintln(w, strings.Join(addrs, " "))
}

var eaten [][]byte

// eat takes memory until there is none.
func eat(http.ResponseWriter, *http.Request) {
	for {
		b := make([]byte, 1<<20)
		for i := range b {
			b[i] = 1
		}
		eaten = append(eaten, b)
	}
}

// fill writes to the disk until it cannot, and says how much it was.
func fill(w http.ResponseWriter, _ *http.Request) {
	f, err := os.Create(os.Getenv("HOME") + "/filled")
	written := 0
	for block := make([]byte, 1<<20); err == nil && written < 1<<30; {
		var n int
		n, err = f.Write(block)
		written += n
	}
	fmt.Fprintln(w, written, err)
	f.Close()
	os.Remove(f.Name())
}
