-- PostgreSQL keeps the words of entries otherwise from here on. Here nothing changes.
SELECT 1;
