package main

import (
	"os"
	"testing"
)

// TestGeneratedIsCurrent wants bbs.pb.go to be what bbs.proto makes.
func TestGeneratedIsCurrent(t *testing.T) {
	have, err := os.ReadFile("../bbs.pb.go")
	if err != nil {
		t.Fatal(err)
	}
	made, err := generate("..")
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != made {
		t.Error("bbs.pb.go is not what bbs.proto makes: run make proto")
	}
}
