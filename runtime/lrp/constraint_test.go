package lrp

import (
	"slices"
	"testing"
)

func TestConstraintAllows(t *testing.T) {
	cells := map[int][]string{
		1: {"staging", "skynet"}, 2: {"staging", "skynet"}, 3: {"staging"}, 4: {"staging"},
		5: {"production", "skynet"}, 6: {"production", "skynet"}, 7: {"production"}, 8: {"production"}, 9: {"SkyNet"},
	}
	for _, test := range []struct {
		require, disallow []string
		want              []int
	}{
		{nil, nil, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{[]string{"staging"}, nil, []int{1, 2, 3, 4}},
		{nil, []string{"production"}, []int{1, 2, 3, 4, 9}},
		{[]string{"staging", "SKYNET"}, nil, []int{1, 2}},
		{[]string{"Staging"}, []string{"skynet"}, []int{3, 4}},
		{[]string{"staging"}, []string{"staging"}, nil},
		{[]string{"alfalfa"}, nil, nil},
	} {
		var got []int
		for n := 1; n <= 9; n++ {
			if (Constraint{test.require, test.disallow}).Allows(cells[n]) {
				got = append(got, n)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("require %v, disallow %v: got cells %v; want %v", test.require, test.disallow, got, test.want)
		}
	}
}
