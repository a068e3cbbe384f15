// Command app is what the tests run in containers: its first argument says how
// it behaves.
package main

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	behaviours := map[string]func([]string){
		"exit": exit, "eat": eat, "fill": fill, "term": term, "chatter": chatter, "serve": serve, "show": show, "sleep": sleep, "stage": stage,
	}
	behaviours[os.Args[1]](os.Args[2:])
}

func exit(args []string) {
	code, _ := strconv.Atoi(args[0])
	fmt.Println("leaving")
	sleep(args[1:])
	os.Exit(code)
}

// eat takes memory until there is none.
func eat([]string) {
	var held [][]byte
	for {
		b := make([]byte, 1<<20)
		for n := 0; n < len(b); n += 4096 {
			b[n] = 1
		}
		held = append(held, b)
	}
}

// fill writes until the disk is full.
func fill([]string) {
	f, err := os.Create("/home/vcap/full")
	for err == nil {
		_, err = f.Write(make([]byte, 1<<20))
	}
	fmt.Println(err)
	os.Exit(28)
}

// term ends well when it is asked to.
func term([]string) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	fmt.Println("waiting")
	<-asked
	fmt.Println("asked to end")
}

func chatter(args []string) {
	n, _ := strconv.Atoi(args[0])
	for i := range n {
		fmt.Printf("line %d of some length, so that a pipe fills\n", i)
	}
}

// serve answers with its PID and counts on its output.
func serve([]string) {
	go func() {
		for n := 0; ; n++ {
			fmt.Println("count", n)
			time.Sleep(10 * time.Millisecond)
		}
	}()
	started := time.Now().UnixNano()
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, started) })
	fmt.Println(http.ListenAndServe(":"+os.Getenv("PORT"), nil))
}

// show prints what it finds.
func show(args []string) {
	for _, arg := range args {
		if name, ok := strings.CutPrefix(arg, "$"); ok {
			fmt.Printf("%s=%s\n", name, os.Getenv(name))
			continue
		}
		content, err := os.ReadFile(arg)
		fmt.Printf("%s: %s %v\n", arg, strings.ReplaceAll(string(content), "\n", ";"), err)
	}
	dir, _ := os.Getwd()
	host, _ := os.Hostname()
	fmt.Println("as", os.Getuid(), os.Getgid(), "in", dir, "on", host)
	time.Sleep(time.Hour)
}

func sleep(args []string) {
	if len(args) == 0 {
		return
	}
	d, _ := time.ParseDuration(args[0])
	time.Sleep(d)
}

// stage leaves what a staging task leaves.
func stage([]string) {
	for path, content := range map[string]string{"/tmp/result.json": "{}", "/tmp/droplet": "a droplet"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}
