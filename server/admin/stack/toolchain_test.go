package stack

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestToolchainPackages(t *testing.T) {
	for suite, want := range map[string][]string{
		"debian12": {"nginx-light", "libnginx-mod-stream", "default-jre-headless", "tomcat10-common"},
		"jammy":    {"nginx-light", "libnginx-mod-stream", "default-jre-headless", "tomcat9-common"},
	} {
		got, err := toolchainPackages(suite, []string{"nginx", "java"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", suite, diff)
		}
	}
	if _, err := toolchainPackages("debian12", []string{"dotnet-core"}); err == nil {
		t.Error("dotnet-core is in no Debian: want an error")
	}
}
