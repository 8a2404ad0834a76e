// Holds where it was compiled, which a cache that is shared must not answer with another build's place.
extern "C" const char* question() { return __FILE__; }
