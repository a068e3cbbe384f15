// The fetch command downloads a buildpack that an app names by URL: a zip file,
// or a git repository with a branch, tag or commit after "#". It runs inside the
// app's staging container, as Cloud Foundry's builder does: the security groups,
// resolver and proxies of that staging apply to the download. The daemon itself
// connects to no buildpack's URL.
//
// Called as "fetch stage" it stages an app in a pod of a cluster (see package stage); as "fetch agent" and "fetch tunnel" it is the
// agent of a cluster's cell, by which the daemon reaches the cell's pods (see package tunnel).
//
// It is separate from the lifecycle command because the git client would slow
// down the start of every tool by a millisecond.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"cupola/cmd/lifecycle/stage"
	"cupola/runtime/contract"
)

func main() {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case contract.CommandStage:
			os.Exit(stage.Main())
		case contract.CommandAgent:
			os.Exit(agent())
		case contract.CommandTunnel:
			os.Exit(serveTunnel())
		}
	}
	os.Exit(run(os.Args[1:]))
}

// run downloads as args say, without the program's name, and returns the exit
// code.
func run(args []string) int {
	flags := flag.NewFlagSet("fetch", flag.ContinueOnError)
	to := flags.String("to", "", "directory to unpack the buildpack into; it must not exist")
	name := flags.String("name", "", "what the buildpack is called in the log")
	archive := flags.Bool("archive", false, "the URL leads to an archive of any kind, never to a repository")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *to == "" || *name == "" || os.Getenv(contract.EnvBuildpackURL) == "" {
		fmt.Fprintf(os.Stderr, "usage: %s=URL fetch -to DIRECTORY -name NAME\n", contract.EnvBuildpackURL)
		return 2
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), timeLimit, fmt.Errorf("it took longer than %s", timeLimit))
	defer cancel()
	if err := download(ctx, source{os.Getenv(contract.EnvBuildpackURL), *archive}, *name, *to); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		fmt.Fprintf(os.Stderr, "Failed to download buildpack '%s': %v\n", *name, err)
		if *archive {
			return exitCNB
		}
		return 1
	}
	return 0
}

// exitCNB is the exit code of cnbapplifecycle's builder for a buildpack that it cannot download.
const exitCNB = 232

func download(ctx context.Context, from source, name, to string) error {
	fmt.Printf("Downloading buildpack %s...\n", name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	size, err := newFetcher().fetch(ctx, from, to)
	if err != nil {
		return err
	}
	fmt.Printf("Downloaded buildpack `%s` (%s)\n", name, contract.ByteSize(size)) // buildpackapplifecycle: downloadBuildpacks
	return nil
}
