package debian_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"cupola/rootfs/debian"
)

// Build a stack from the newest packages, keep its lock, and build the very same
// stack again from that.
func ExampleBuild() {
	ctx := context.Background()
	newest, err := debian.Build(ctx, debian.Options{
		Suite:    "debian12",
		Variant:  "core",
		Dest:     "stacks/debian12",
		CacheDir: "cache",
		Progress: func(p debian.Progress) { fmt.Printf("%s %s %d/%d\n", p.Step, p.Detail, p.Done, p.Total) },
	})
	if err != nil {
		log.Fatal(err)
	}
	file, err := os.Create("debian12.lock.json")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	if _, err := newest.Lock.WriteTo(file); err != nil {
		log.Fatal(err)
	}
	if _, err := debian.Build(ctx, debian.Options{Lock: newest.Lock, Dest: "stacks/again", CacheDir: "cache"}); err != nil {
		log.Fatal(err)
	}
}
