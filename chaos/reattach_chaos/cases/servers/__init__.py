"""Our own servers under the cases, what is done to them while a gate holds, and what is read from them past every fault."""
