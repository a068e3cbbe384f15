package api

import "testing"

// TestStagingFitsTheMachine wants a build that says nothing to have half of a
// small machine: the largest cell here has 512 MB of memory and 1 GB of disk.
func TestStagingFitsTheMachine(t *testing.T) {
	for asked, want := range map[string]string{
		``: `{"staging_memory_in_mb": 256, "staging_disk_in_mb": 512}`,
		`, "staging_memory_in_mb": 700, "staging_disk_in_mb": 7000`: `{"staging_memory_in_mb": 700, "staging_disk_in_mb": 7000}`,
	} {
		newWorld(t).run(t, []step{{method: "POST", path: "/v3/builds", body: `{"package": {"guid": "package-1"}` + asked + `}`, status: 201, want: want}})
	}
}
