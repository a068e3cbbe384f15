package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	table := NewTable("way", "ms")
	table.Add("runc run", "44.2")
	table.Add("é", "3")
	var got strings.Builder
	table.Print(&got)
	want := `| way      |   ms |
|----------|-----:|
| runc run | 44.2 |
| é        |    3 |

`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestQuantile(t *testing.T) {
	tests := []struct {
		all   []int
		share float64
		want  int
	}{
		{[]int{7}, 0.5, 7}, {[]int{3, 1, 2}, 0.5, 2}, {[]int{3, 1, 2}, 0.9, 3}, {[]int{3, 1, 2}, 1, 3}, {[]int{3, 1, 2}, 0, 1},
	}
	for _, test := range tests {
		if got := Quantile(test.all, test.share); got != test.want {
			t.Errorf("quantile %g of %v: got %d; want %d", test.share, test.all, got, test.want)
		}
	}
}
