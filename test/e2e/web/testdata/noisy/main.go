// Command noisy is an app that says what it is asked to. With CRASH in its
// environment it exits at once, with its line of the file that this names if there is one; as a task it says some lines, and sleeps if it is
// to. With the argument size it says its terminal's columns and rows.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "size" {
		size, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Printf("columns=%d rows=%d\n", size.Col, size.Row)
		return
	}
	if len(os.Args) > 1 {
		fmt.Println("task begins with", os.Args[1:])
		seconds, _ := strconv.Atoi(os.Args[1])
		time.Sleep(time.Duration(seconds) * time.Second)
		fmt.Println("task ends")
		return
	}
	if cause := os.Getenv("CRASH"); cause != "" {
		fmt.Println(lastWords(cause))
		os.Exit(3)
	}
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "colour", os.Getenv("COLOUR")) })
	http.HandleFunc("POST /say", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(os.Stdout, r.Body) })
	http.HandleFunc("/flood", flood)
	fmt.Println(http.ListenAndServe(":"+os.Getenv("PORT"), nil))
	os.Exit(1)
}

// lastWords are an instance's line of the file that is named as the cause, or else
// always the same.
func lastWords(cause string) string {
	text, err := os.ReadFile(cause)
	if err != nil {
		return "\x1b[31mfatal:\x1b[0m no database"
	}
	lines := strings.Split(string(text), "\n")
	n, _ := strconv.Atoi(os.Getenv("CF_INSTANCE_INDEX"))
	return lines[n%len(lines)]
}

// flood says lines, so many a second for so many seconds.
func flood(_ http.ResponseWriter, r *http.Request) {
	rate, _ := strconv.Atoi(r.FormValue("rate"))
	seconds, _ := strconv.Atoi(r.FormValue("seconds"))
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := range seconds * 10 {
		<-tick.C
		for i := range rate / 10 {
			fmt.Printf("flood line %d of second %d says %x\n", i, n/10, i*n)
		}
	}
}
