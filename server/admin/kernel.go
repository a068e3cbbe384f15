package admin

import (
	"context"
	"fmt"
	"strings"

	"cupola/server/admin/stack"
	"cupola/server/admin/steps"
	"cupola/server/doctor"
)

// CheckKernels asks the running daemon of a data directory for apps on images that were staged with another major version of
// Linux. It returns no result if there are none, or if no daemon answers.
func CheckKernels(ctx context.Context, dataDir string) []doctor.Result {
	listing, err := call[stack.Listing](ctx, dataDir, StackList.path(), None{}, func(steps.Step) {})
	if err != nil || len(listing.Kernels) == 0 {
		return nil
	}
	var apps []string
	for _, k := range listing.Kernels[:min(len(listing.Kernels), maxListed)] {
		apps = append(apps, fmt.Sprintf("%s (Linux %s)", k.App, k.Kernel))
	}
	if more := len(listing.Kernels) - maxListed; more > 0 {
		apps = append(apps, fmt.Sprintf("and %d more", more))
	}
	return []doctor.Result{{Name: "images", Level: doctor.Warn, Fix: "cf restage APP   # then check that the programs of its image run",
		Detail: "apps on images were staged with another major version of Linux: " + strings.Join(apps, ", ")}}
}

// maxListed is how many apps a result names.
const maxListed = 10
