CREATE OR REPLACE FUNCTION reconciler.utf16_order(name text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
-- A text whose byte order is the order of name in UTF-16 code units, which RFC 8785
-- sorts by. The two orders differ only between U+E000–U+FFFF and the characters above
-- them, whose surrogates are lower: so each of the former gets U+10FFFF before it, and
-- a real U+10FFFF is told apart by what follows.
BEGIN
    IF octet_length(name) = char_length(name) THEN
        RETURN name; -- ASCII
    END IF;
    RETURN regexp_replace(
        replace(name, U&'\+10FFFF', U&'\+10FFFF\0001'),
        '([\uE000-\uFFFF])', U&'\+10FFFF\0002' || '\1', 'g');
END $$;
