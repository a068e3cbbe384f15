// Command compress packs a program for package packed.
package main

import (
	"log"
	"os"

	"cupola/runtime/packed"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: compress PROGRAM FILE")
	}
	program, err := os.ReadFile(os.Args[1])
	if err == nil {
		program, err = packed.Pack(program)
	}
	if err == nil {
		err = os.WriteFile(os.Args[2], program, 0o600)
	}
	if err != nil {
		log.Fatal(err)
	}
}
