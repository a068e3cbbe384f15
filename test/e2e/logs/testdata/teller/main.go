// Command teller is an app without a port that writes numbered lines, as many a second as its argument says.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	rate, err := strconv.Atoi(os.Args[1])
	if err != nil || rate < 1 {
		fmt.Println("give the number of lines a second")
		os.Exit(1)
	}
	tick := time.Tick(time.Second / time.Duration(rate))
	for n := 0; ; n++ {
		fmt.Println("line", n)
		<-tick
	}
}
