//go:build linux

package fetch

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// EnvURL is the environment variable with the URL, which may hold a password:
// everybody on the machine may read a command line.
const EnvURL = "BUILDPACK_URL"

// Main fetches as args (without the program's name) say and returns the exit code.
func Main(args []string) int {
	flags := flag.NewFlagSet("fetch", flag.ContinueOnError)
	to := flags.String("to", "", "directory to unpack the buildpack into; it must not exist")
	name := flags.String("name", "", "what the buildpack is called in the log")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *to == "" || *name == "" || os.Getenv(EnvURL) == "" {
		fmt.Fprintf(os.Stderr, "usage: %s=URL fetch -to DIRECTORY -name NAME\n", EnvURL)
		return 2
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), timeLimit, fmt.Errorf("it took longer than %s", timeLimit))
	defer cancel()
	if err := run(ctx, os.Getenv(EnvURL), *name, *to); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		fmt.Fprintf(os.Stderr, "Failed to download buildpack '%s': %v\n", *name, err)
		return 1
	}
	return 0
}

func run(ctx context.Context, url, name, to string) error {
	fmt.Printf("Downloading buildpack %s...\n", name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	size, err := newFetcher().fetch(ctx, url, to)
	if err != nil {
		return err
	}
	fmt.Printf("Downloaded buildpack %s (%s)\n", name, byteSize(size))
	return nil
}

// byteSize is a size as Diego's logs have it: 1.5M.
func byteSize(n int64) string {
	const units = "BKMGT"
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if unit == 0 || value == float64(int64(value)) {
		return fmt.Sprintf("%.0f%c", value, units[unit])
	}
	return fmt.Sprintf("%.1f%c", value, units[unit])
}
