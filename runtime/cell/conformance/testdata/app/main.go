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
		"look": look, "follow": follow, "limits": limits, "write": write, "ignore": ignore,
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

// term ends well when it is asked to. Its arguments tell its lines from those of others.
func term(args []string) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	fmt.Println("waiting", strings.Join(args, " "))
	<-asked
	fmt.Println("asked to end")
}

// ignore tells which signals it gets, and goes on.
func ignore([]string) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	fmt.Println("ignoring")
	for s := range asked {
		fmt.Println("got", s)
	}
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

// look prints mode and owner of files, and whether they can be written to.
func look(args []string) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			fmt.Println(arg, err)
			continue
		}
		st := info.Sys().(*syscall.Stat_t)
		writing := os.WriteFile(arg, nil, 0)
		making := os.WriteFile(arg+"/new", nil, 0o600)
		fmt.Println(arg, info.Mode(), st.Uid, st.Gid, errno(writing), errno(making))
	}
	time.Sleep(time.Hour)
}

func errno(err error) string {
	if path, ok := err.(*os.PathError); ok {
		return strings.ReplaceAll(path.Err.Error(), " ", "-")
	}
	return fmt.Sprint(err)
}

// follow prints the content of two files whenever it changes, one look at the
// link ..data for both.
func follow(args []string) {
	for last := ""; ; time.Sleep(2 * time.Millisecond) {
		to, err := os.Readlink(args[0] + "/..data")
		if err != nil {
			fmt.Println(err)
			return
		}
		a, err := os.ReadFile(args[0] + "/" + to + "/" + args[1])
		b, err2 := os.ReadFile(args[0] + "/" + to + "/" + args[2])
		if now := string(a) + " and " + string(b); err == nil && err2 == nil && now != last {
			fmt.Println("follow:", now)
			last = now
		}
	}
}

// limits prints its resource limits.
func limits([]string) {
	for name, resource := range map[string]int{"nofile": syscall.RLIMIT_NOFILE, "nproc": 6} {
		var l syscall.Rlimit
		err := syscall.Getrlimit(resource, &l)
		fmt.Println(name, l.Cur, l.Max, err)
	}
}

// write appends its other arguments to a file, and prints it.
func write(args []string) {
	f, err := os.OpenFile(args[0], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Fprintln(f, strings.Join(args[1:], " "))
	f.Close()
	content, _ := os.ReadFile(args[0])
	fmt.Println(strings.ReplaceAll(string(content), "\n", ";"))
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
