package otlp

import (
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// cumulative says that a number counts from its start on.
const cumulative = 2

// metrics are what Prometheus would scrape now, under the same names. Counters are
// sums since the daemon's start. The error is of what could not be gathered.
func (e *Exporter) metrics(now time.Time) (all []message, err error) {
	families, err := e.Gatherer.Gather()
	p := points{start: nano(e.began), now: nano(now)}
	for _, f := range families {
		var field kind
		var of message // the points
		for _, s := range f.GetMetric() {
			var labels []message
			for _, l := range s.GetLabel() {
				labels = append(labels, pair(l.GetName(), l.GetValue()))
			}
			switch {
			case s.GetCounter() != nil:
				field, of = sum, of.bytes(1, p.number(s.GetCounter().GetValue(), p.start, labels))
			case s.GetGauge() != nil:
				field, of = gauge, of.bytes(1, p.number(s.GetGauge().GetValue(), 0, labels))
			case s.GetUntyped() != nil:
				field, of = gauge, of.bytes(1, p.number(s.GetUntyped().GetValue(), 0, labels))
			case s.GetHistogram() != nil:
				h := s.GetHistogram()
				var bounds, upTo []uint64
				for _, b := range h.GetBucket() {
					bounds, upTo = append(bounds, math.Float64bits(b.GetUpperBound())), append(upTo, b.GetCumulativeCount())
				}
				field, of = histogram, of.bytes(1, p.histogram(bounds, upTo, h.GetSampleCount(), h.GetSampleSum(), labels))
			case s.GetSummary() != nil:
				y := s.GetSummary()
				d := p.counted(y.GetSampleCount(), y.GetSampleSum())
				for _, q := range y.GetQuantile() {
					d = d.bytes(6, message(nil).double(1, q.GetQuantile()).double(2, q.GetValue()))
				}
				field, of = summary, of.bytes(1, labelled(d, 7, labels))
			}
		}
		if field != 0 {
			all = append(all, field.metric(f.GetName(), f.GetHelp(), of))
		}
	}
	return all, err
}

// kind is the field of a metric that has its points.
type kind int32

const (
	gauge     kind = 5
	sum       kind = 7
	histogram kind = 9
	summary   kind = 11
)

func (k kind) metric(name, help string, of message) message {
	if k == sum || k == histogram {
		of = of.varint(2, cumulative)
	}
	if k == sum {
		of = of.varint(3, 1) // it only grows
	}
	return message(nil).text(1, name).text(2, help).bytes(protowire.Number(k), of)
}

// points makes points of data, all of one time.
type points struct{ start, now uint64 }

func (p points) number(value float64, start uint64, labels []message) message {
	var m message
	if start != 0 {
		m = m.fixed(2, start)
	}
	return labelled(m.fixed(3, p.now).double(4, value), 7, labels)
}

// counted is the beginning of a histogram's or a summary's point.
func (p points) counted(count uint64, sum float64) message {
	return message(nil).fixed(2, p.start).fixed(3, p.now).fixed(4, count).double(5, sum)
}

// histogram is a histogram's point. Prometheus' counts are of all values up to a
// bound; OTLP's of those between two, and it has one more than bounds.
func (p points) histogram(bounds, upTo []uint64, count uint64, sum float64, labels []message) message {
	counts := append(upTo, count)
	for i := len(counts) - 1; i > 0; i-- {
		counts[i] -= counts[i-1]
	}
	return labelled(p.counted(count, sum).packed(6, counts).packed(7, bounds), 9, labels)
}

func labelled(m message, field protowire.Number, labels []message) message {
	for _, l := range labels {
		m = m.bytes(field, l)
	}
	return m
}
