package lowwater

import "testing"

func TestMark(t *testing.T) {
	const disk = 100 << 30
	for text, want := range map[string]uint64{"": 5 << 30, "10%": 10 << 30, "0.5%": 512 << 20, "2G": 2 << 30, "1.5GB": 3 << 29, "900G": 50 << 30, "off": 0} {
		m, err := Parse(text)
		if err != nil || m.Of(disk) != want {
			t.Errorf("%q: got %d, %v; want %d", text, m.Of(disk), err, want)
		}
	}
	if got := (Mark{}).Of(1 << 42); got != maxDefault {
		t.Errorf("got %d of 4 TB; want %d", got, maxDefault)
	}
	for _, text := range []string{"5", "%", "0%", "51%", "-1%", "NaN%", "Inf%", "-1G", "0G", "much", "OFF", " "} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

// FuzzParse holds that no mark is above half of the disk, whatever was given.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "5%", "10G", "off", "1e300%", "9999999999999T"} {
		f.Add(text, uint64(1<<40))
	}
	f.Fuzz(func(t *testing.T, text string, total uint64) {
		m, err := Parse(text)
		if got := m.Of(total); err == nil && got > total/2 || err != nil && m != (Mark{}) {
			t.Errorf("%q of %d: got %d, %v", text, total, got, err)
		}
	})
}
