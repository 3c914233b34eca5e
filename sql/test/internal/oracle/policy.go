package oracle

import "encoding/json"

const week = "604800" // seconds

// retryPolicyOK reports whether the policy can be read: SQL's null (nil), or an object with numbers for any
// of max_attempts (whole, 1 to 100), base_seconds (above 0), max_seconds (at least base_seconds, at most a
// week), jitter (0 to 1), and nothing else.
func retryPolicyOK(policy json.RawMessage) bool {
	if policy == nil {
		return true
	}
	value, ok := parse(policy)
	if !ok {
		return false
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return false
	}
	numbers := map[string]decimal{
		"max_attempts": decimalOf("10"),
		"base_seconds": decimalOf("1"),
		"max_seconds":  decimalOf("3600"),
		"jitter":       decimalOf("0.2"),
	}
	for name, value := range fields {
		number, isNumber := value.(json.Number)
		if _, known := numbers[name]; !known || !isNumber {
			return false
		}
		numbers[name] = decimalOf(number)
	}
	attempts, base, longest := numbers["max_attempts"], numbers["base_seconds"], numbers["max_seconds"]
	return attempts.isWhole() && between(attempts, "1", "100") &&
		base.sign > 0 && longest.compare(base) >= 0 && longest.compare(decimalOf(week)) <= 0 &&
		between(numbers["jitter"], "0", "1")
}

func between(d decimal, low, high json.Number) bool {
	return d.compare(decimalOf(low)) >= 0 && d.compare(decimalOf(high)) <= 0
}
